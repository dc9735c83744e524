// Opens the shared libraries of boosted trees. No program is linked to them: one that trains no
// trees starts without them, and one where they are missing says what it looked for.
#pragma once

#include <absl/status/statusor.h>

#include <string>

namespace traind {

struct TreeLibrary {
  const char* name;      // what people call it
  const char* version;   // the one whose functions we call
  const char* path;      // of its file below a folder of wheels
  const char* variable;  // the environment variable that may name the file
};

extern const TreeLibrary kLightgbmLibrary, kXgboostLibrary;

// An opened library, which stays open until the process ends.
class OpenedLibrary {
 public:
  OpenedLibrary(void* handle, std::string path) : handle_(handle), path_(std::move(path)) {}

  const std::string& path() const { return path_; }

  // Sets a function pointer. Errors: USER_ERROR where the library has no such function.
  template <class Function>
  absl::Status Find(const char* name, Function*& function) const {
    void* const symbol = Symbol(name);
    function = reinterpret_cast<Function*>(symbol);
    return symbol == nullptr ? Missing(name) : absl::OkStatus();
  }

 private:
  void* Symbol(const char* name) const;
  absl::Status Missing(const char* name) const;

  void* handle_;
  std::string path_;
};

// Looks in this order: the file that the environment variable names (then nowhere else), the
// folder trees/ of a release, and where deploy/setup.sh has put it.
// Errors: USER_ERROR (worker/task/failure.h) names the library, its version and the places.
// Threads: safe.
absl::StatusOr<OpenedLibrary> OpenTreeLibrary(const TreeLibrary& library);

// USER_ERROR where the version found is another one than the library's.
absl::Status CheckTreeVersion(const TreeLibrary& library, const std::string& path,
                              const std::string& found);

}  // namespace traind
