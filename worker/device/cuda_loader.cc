#include <absl/status/status.h>
#include <absl/strings/str_cat.h>
#include <dlfcn.h>
#include <unistd.h>

#include <climits>
#include <string>

#include "worker/device/cuda_api.h"
#include "worker/device/guard.h"

namespace traind {
namespace {

constexpr char kLibrary[] = "libtraind_cuda.so";

std::string ProgramDir() {
  char path[PATH_MAX];
  const ssize_t size = readlink("/proc/self/exe", path, sizeof path);
  if (size <= 0) return ".";
  const std::string program(path, static_cast<size_t>(size));
  return program.substr(0, program.rfind('/'));
}

// Installed, the library is beside the program; in a build tree it is beside
// the program's package.
std::string FindLibrary() {
  const std::string dir = ProgramDir();
  for (const char* place :
       {"/", "/device/", "/../device/", "/../../worker/device/", "/../../../worker/device/"}) {
    const std::string path = absl::StrCat(dir, place, kLibrary);
    if (access(path.c_str(), R_OK) == 0) return path;
  }
  return "";
}

absl::StatusOr<const CudaApi*> Load() {
  if (dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL) == nullptr) {
    return absl::UnavailableError(absl::StrCat("no CUDA driver: ", dlerror()));
  }
  const std::string path = FindLibrary();
  if (path.empty()) return absl::NotFoundError(absl::StrCat(kLibrary, " is not installed"));
  void* library = dlopen(path.c_str(), RTLD_NOW);
  if (library == nullptr)
    return absl::InternalError(absl::StrCat("cannot load the CUDA library: ", dlerror()));
  using EntryPoint = const CudaApi* (*)();
  const auto entry = reinterpret_cast<EntryPoint>(dlsym(library, kCudaEntryPoint));
  if (entry == nullptr) return absl::InternalError(absl::StrCat(path, ": ", dlerror()));
  const CudaApi* api = entry();
  int devices = 0;
  const absl::Status counted = Guarded([&] {
    devices = api->DeviceCount();
    return absl::OkStatus();
  });
  if (!counted.ok()) return counted;
  if (devices == 0) return absl::UnavailableError("there is a CUDA driver, but no device");
  return api;
}

}  // namespace

absl::StatusOr<const CudaApi*> LoadCuda() {
  static const absl::StatusOr<const CudaApi*> loaded = Load();
  return loaded;
}

}  // namespace traind
