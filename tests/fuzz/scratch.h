// Files for parsers that open them by path.
#pragma once

#include <absl/strings/str_cat.h>
#include <absl/strings/string_view.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace traind {

// A folder in memory, where there is one, that lives as long as the process.
class Scratch {
 public:
  Scratch() {
    std::error_code error;
    path_ = absl::StrCat(std::filesystem::exists("/dev/shm", error) ? "/dev/shm" : "/tmp",
                         "/traind-fuzz.XXXXXX");
    if (mkdtemp(path_.data()) == nullptr) std::abort();
  }
  ~Scratch() {
    std::error_code error;
    std::filesystem::remove_all(path_, error);
  }

  const std::string& path() const { return path_; }
  // Writes a file below the folder, and returns its path.
  std::string Write(absl::string_view name, absl::string_view bytes) const {
    const std::string path = absl::StrCat(path_, "/", name);
    std::error_code error;
    std::filesystem::create_directories(std::filesystem::path(path).parent_path(), error);
    std::ofstream(path, std::ios::binary)
        .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    return path;
  }

 private:
  std::string path_;
};

}  // namespace traind
