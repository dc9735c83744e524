#pragma once

#include <memory>
#include <optional>
#include <string>

namespace traind {

// What the NVIDIA driver's management library tells. The library comes with the
// driver, so it is opened at run time.
class Nvml {
 public:
  // None where there is no driver.
  static std::unique_ptr<Nvml> Load();

  ~Nvml();
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  int DeviceCount() const;

  struct Memory {
    unsigned long long used;
    unsigned long long total;
  };
  std::optional<Memory> DeviceMemory(int device) const;

 private:
  struct Functions;
  explicit Nvml(std::unique_ptr<Functions> functions);

  std::unique_ptr<Functions> functions_;
};

}  // namespace traind
