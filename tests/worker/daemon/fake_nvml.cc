// Stands in for the driver's management library: two GPUs, GPU-0 and GPU-1.
#include <nvml.h>

#include <cstdint>
#include <cstdio>

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
  memory->free = memory->total;
  memory->used = 0;
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

}  // extern "C"
