#pragma once

#include <memory>
#include <string>
#include <vector>

namespace traind {

// What the NVIDIA driver's management library tells. The library comes with the
// driver, so it is opened at run time. Threads: safe, as the library is.
class Nvml {
 public:
  // None where there is no driver.
  static std::unique_ptr<Nvml> Load();

  ~Nvml();
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  struct Device {
    std::string name;
    std::string uuid;                    // "GPU-..."
    int major = 0, minor = 0;            // compute capability
    unsigned long long total_bytes = 0;  // memory
  };
  // Those that answer, in the order of the PCI bus.
  std::vector<Device> Devices() const;

 private:
  struct Functions;
  explicit Nvml(std::unique_ptr<Functions> functions);

  std::unique_ptr<Functions> functions_;
};

}  // namespace traind
