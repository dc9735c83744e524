#pragma once

#include <memory>
#include <optional>
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

  // Of the driver, "580.65.06"; empty: not told.
  std::string DriverVersion() const;
  // The newest CUDA that the driver runs, "13.0"; empty: not told.
  std::string CudaVersion() const;

  // What a GPU does now. A figure that it does not tell is below 0.
  struct Figures {
    double utilisation = -1;   // share of the last moment (up to 1 s) in which a kernel ran, 0-1
    double memory_bytes = -1;  // in use by all processes
    double power_watts = -1;
    double temperature_celsius = -1;
    double energy_joules = -1;  // since the driver was loaded
  };
  // None: no such device, or it does not answer.
  std::optional<Figures> Read(const std::string& uuid) const;

 private:
  struct Functions;
  explicit Nvml(std::unique_ptr<Functions> functions);

  std::unique_ptr<Functions> functions_;
};

}  // namespace traind
