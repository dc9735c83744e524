#include "worker/trees/tree_library.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>
#include <dlfcn.h>
#include <tree_libraries.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <vector>

#include "worker/task/failure.h"

namespace traind {
namespace {

std::vector<std::string> PlacesOf(const TreeLibrary& library) {
  const char* const named = std::getenv(library.variable);
  if (named != nullptr && *named != '\0') return {named};
  std::vector<std::string> places;
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  if (!error) {
    places.push_back(
        absl::StrCat(self.parent_path().parent_path().string(), "/trees/", library.path));
  }
  if (*TREE_LIBRARIES_DIR != '\0') {
    places.push_back(absl::StrCat(TREE_LIBRARIES_DIR, "/", library.path));
  }
  return places;
}

}  // namespace

const TreeLibrary kLightgbmLibrary = {"LightGBM", LIGHTGBM_VERSION, "lightgbm/lib/lib_lightgbm.so",
                                      "TRAIND_LIGHTGBM"};
const TreeLibrary kXgboostLibrary = {"XGBoost", XGBOOST_VERSION, "xgboost/lib/libxgboost.so",
                                     "TRAIND_XGBOOST"};

void* OpenedLibrary::Symbol(const char* name) const { return dlsym(handle_, name); }

absl::Status OpenedLibrary::Missing(const char* name) const {
  return UserError(
      absl::StrCat(path_, " has no function ", name, ": it is another library or version"));
}

absl::StatusOr<OpenedLibrary> OpenTreeLibrary(const TreeLibrary& library) {
  std::vector<std::string> failures;
  for (const std::string& place : PlacesOf(library)) {
    // Local: LibTorch brings symbols of the same names, of OpenMP among others.
    void* const handle = dlopen(place.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle != nullptr) return OpenedLibrary(handle, place);
    const bool exists = access(place.c_str(), F_OK) == 0;
    failures.push_back(exists ? absl::StrCat(place, " (", dlerror(), ")") : place);
  }
  return UserError(
      absl::StrCat("the library ", library.name, " ", library.version, " is missing; looked for ",
                   failures.empty() ? "nothing" : absl::StrJoin(failures, ", "),
                   ". deploy/setup.sh installs it, or ", library.variable, " names the file"));
}

absl::Status CheckTreeVersion(const TreeLibrary& library, const std::string& path,
                              const std::string& found) {
  if (found == library.version) return absl::OkStatus();
  return UserError(absl::StrCat(path, " is ", library.name, " ",
                                found.empty() ? "of an unknown version" : found, ", but ",
                                library.version, " is needed"));
}

}  // namespace traind
