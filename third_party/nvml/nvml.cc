#include "third_party/nvml/nvml.h"

#include <dlfcn.h>
#include <nvml.h>

#include <utility>

namespace traind {
namespace {

struct CloseLibrary {
  void operator()(void* library) const { dlclose(library); }
};

}  // namespace

struct Nvml::Functions {
  std::unique_ptr<void, CloseLibrary> library;
  // nvml.h renames the functions to their newest version (_v2) by macros, and
  // so it does in the names below.
  decltype(&nvmlInit) init = nullptr;
  decltype(&nvmlShutdown) shutdown = nullptr;
  decltype(&nvmlDeviceGetCount) count = nullptr;
  decltype(&nvmlDeviceGetHandleByIndex) handle = nullptr;
  decltype(&nvmlDeviceGetMemoryInfo) memory = nullptr;
  decltype(&nvmlDeviceGetName) name = nullptr;
  decltype(&nvmlDeviceGetUUID) uuid = nullptr;
  decltype(&nvmlDeviceGetCudaComputeCapability) capability = nullptr;
  // Older drivers lack some of these.
  decltype(&nvmlDeviceGetHandleByUUID) handle_by_uuid = nullptr;
  decltype(&nvmlDeviceGetUtilizationRates) utilization = nullptr;
  decltype(&nvmlDeviceGetPowerUsage) power = nullptr;
  decltype(&nvmlDeviceGetTemperature) temperature = nullptr;
  decltype(&nvmlDeviceGetTotalEnergyConsumption) energy = nullptr;
  decltype(&nvmlSystemGetDriverVersion) driver = nullptr;
  decltype(&nvmlSystemGetCudaDriverVersion) cuda = nullptr;
};

#define TRAIND_STRING_(x) #x
#define TRAIND_STRING(x) TRAIND_STRING_(x)
// Whether the library has it.
#define TRAIND_FIND(member, name)                                      \
  ((functions->member = reinterpret_cast<decltype(functions->member)>( \
        dlsym(functions->library.get(), TRAIND_STRING(name)))) != nullptr)

std::unique_ptr<Nvml> Nvml::Load() {
  auto functions = std::make_unique<Functions>();
  functions->library.reset(dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL));
  if (!functions->library) return nullptr;
  if (!(TRAIND_FIND(init, nvmlInit) && TRAIND_FIND(shutdown, nvmlShutdown) &&
        TRAIND_FIND(count, nvmlDeviceGetCount) && TRAIND_FIND(handle, nvmlDeviceGetHandleByIndex) &&
        TRAIND_FIND(memory, nvmlDeviceGetMemoryInfo) && TRAIND_FIND(name, nvmlDeviceGetName) &&
        TRAIND_FIND(uuid, nvmlDeviceGetUUID) &&
        TRAIND_FIND(capability, nvmlDeviceGetCudaComputeCapability))) {
    return nullptr;
  }
  (void)TRAIND_FIND(handle_by_uuid, nvmlDeviceGetHandleByUUID);
  (void)TRAIND_FIND(utilization, nvmlDeviceGetUtilizationRates);
  (void)TRAIND_FIND(power, nvmlDeviceGetPowerUsage);
  (void)TRAIND_FIND(temperature, nvmlDeviceGetTemperature);
  (void)TRAIND_FIND(energy, nvmlDeviceGetTotalEnergyConsumption);
  (void)TRAIND_FIND(driver, nvmlSystemGetDriverVersion);
  (void)TRAIND_FIND(cuda, nvmlSystemGetCudaDriverVersion);
  if (functions->init() != NVML_SUCCESS) return nullptr;
  return std::unique_ptr<Nvml>(new Nvml(std::move(functions)));
}

#undef TRAIND_FIND
#undef TRAIND_STRING
#undef TRAIND_STRING_

Nvml::Nvml(std::unique_ptr<Functions> functions) : functions_(std::move(functions)) {}

Nvml::~Nvml() { functions_->shutdown(); }

std::vector<Nvml::Device> Nvml::Devices() const {
  unsigned count = 0;
  if (functions_->count(&count) != NVML_SUCCESS) return {};
  std::vector<Device> devices;
  for (unsigned i = 0; i < count; ++i) {
    nvmlDevice_t handle;
    nvmlMemory_t memory;
    char name[NVML_DEVICE_NAME_V2_BUFFER_SIZE] = "";
    char uuid[NVML_DEVICE_UUID_V2_BUFFER_SIZE] = "";
    Device device;
    // One that fell off the bus gives errors; it must not hide the others.
    if (functions_->handle(i, &handle) != NVML_SUCCESS ||
        functions_->memory(handle, &memory) != NVML_SUCCESS ||
        functions_->name(handle, name, sizeof(name)) != NVML_SUCCESS ||
        functions_->uuid(handle, uuid, sizeof(uuid)) != NVML_SUCCESS ||
        functions_->capability(handle, &device.major, &device.minor) != NVML_SUCCESS) {
      continue;
    }
    device.name = name;
    device.uuid = uuid;
    device.total_bytes = memory.total;
    devices.push_back(std::move(device));
  }
  return devices;
}

std::string Nvml::DriverVersion() const {
  char version[NVML_SYSTEM_DRIVER_VERSION_BUFFER_SIZE] = "";
  if (functions_->driver == nullptr ||
      functions_->driver(version, sizeof(version)) != NVML_SUCCESS) {
    return "";
  }
  return version;
}

std::string Nvml::CudaVersion() const {
  int version = 0;  // 13000 is 13.0
  if (functions_->cuda == nullptr || functions_->cuda(&version) != NVML_SUCCESS) return "";
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

std::optional<Nvml::Figures> Nvml::Read(const std::string& uuid) const {
  nvmlDevice_t handle;
  nvmlMemory_t memory;
  if (functions_->handle_by_uuid == nullptr ||
      functions_->handle_by_uuid(uuid.c_str(), &handle) != NVML_SUCCESS ||
      functions_->memory(handle, &memory) != NVML_SUCCESS) {
    return std::nullopt;
  }
  Figures figures;
  figures.memory_bytes = static_cast<double>(memory.used);
  nvmlUtilization_t busy;
  if (functions_->utilization && functions_->utilization(handle, &busy) == NVML_SUCCESS) {
    figures.utilisation = busy.gpu / 100.0;
  }
  unsigned milliwatts = 0, degrees = 0;
  if (functions_->power && functions_->power(handle, &milliwatts) == NVML_SUCCESS) {
    figures.power_watts = milliwatts / 1000.0;
  }
  if (functions_->temperature &&
      functions_->temperature(handle, NVML_TEMPERATURE_GPU, &degrees) == NVML_SUCCESS) {
    figures.temperature_celsius = degrees;
  }
  unsigned long long millijoules = 0;
  if (functions_->energy && functions_->energy(handle, &millijoules) == NVML_SUCCESS) {
    figures.energy_joules = static_cast<double>(millijoules) / 1000;
  }
  return figures;
}

}  // namespace traind
