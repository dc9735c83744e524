// Stands in for the driver's management library: two GPUs, GPU-0 and GPU-1. Both are busy for 72 %
// of the time at 250 W and 61 degrees, and use 3 GiB; GPU-1 tells no energy.
#include <nvml.h>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <ctime>

namespace {

constexpr unsigned kGpus = 2;

unsigned IndexOf(nvmlDevice_t device) {
  return static_cast<unsigned>(reinterpret_cast<uintptr_t>(device)) - 1;
}

}  // namespace

extern "C" {

nvmlReturn_t nvmlInit() { return NVML_SUCCESS; }
nvmlReturn_t nvmlShutdown() { return NVML_SUCCESS; }
nvmlReturn_t nvmlDeviceGetCount(unsigned* count) {
  *count = kGpus;
  return NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceGetHandleByIndex(unsigned index, nvmlDevice_t* device) {
  *device = reinterpret_cast<nvmlDevice_t>(static_cast<uintptr_t>(index) + 1);
  return NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t, nvmlMemory_t* memory) {
  memory->total = 8ULL << 30;
  memory->used = 3ULL << 30;
  memory->free = memory->total - memory->used;
  return NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t, char* name, unsigned length) {
  std::snprintf(name, length, "Fake GPU");
  return NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char* uuid, unsigned length) {
  std::snprintf(uuid, length, "GPU-%u", IndexOf(device));
  return NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceGetCudaComputeCapability(nvmlDevice_t, int* major, int* minor) {
  *major = 9;
  *minor = 0;
  return NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceGetHandleByUUID(const char* uuid, nvmlDevice_t* device) {
  if (std::strncmp(uuid, "GPU-", 4) != 0) return NVML_ERROR_NOT_FOUND;
  return nvmlDeviceGetHandleByIndex(static_cast<unsigned>(uuid[4] - '0'), device);
}
nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t, nvmlUtilization_t* utilization) {
  utilization->gpu = 72;
  utilization->memory = 10;
  return NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceGetPowerUsage(nvmlDevice_t, unsigned* milliwatts) {
  *milliwatts = 250'000;
  return NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t, nvmlTemperatureSensors_t, unsigned* degrees) {
  *degrees = 61;
  return NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceGetTotalEnergyConsumption(nvmlDevice_t device,
                                                 unsigned long long* millijoules) {
  if (IndexOf(device) == 1) return NVML_ERROR_NOT_SUPPORTED;
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  *millijoules =
      static_cast<unsigned long long>(now.tv_sec) * 250'000 + now.tv_nsec / 1'000'000 * 250;
  return NVML_SUCCESS;
}
nvmlReturn_t nvmlSystemGetDriverVersion(char* version, unsigned length) {
  std::snprintf(version, length, "580.65.06");
  return NVML_SUCCESS;
}
nvmlReturn_t nvmlSystemGetCudaDriverVersion(int* version) {
  *version = 13000;
  return NVML_SUCCESS;
}

}  // extern "C"
