#include "common/job_rules/program_folder.h"

#include <absl/status/status.h>
#include <absl/strings/str_cat.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <system_error>
#include <utility>

#include "common/base/durable_file.h"
#include "common/base/status_macros.h"
#include "common/job_rules/ignore_rules.h"

namespace traind {
namespace {

namespace fs = std::filesystem;

constexpr std::array<const char*, 8> kOfTools = {".git",         ".venv", "venv",        ".hg",
                                                 "node_modules", ".tox",  ".mypy_cache", ".cache"};

class Listing {
 public:
  Listing(std::string left_out, IgnoreRules rules)
      : left_out_(std::move(left_out)), rules_(std::move(rules)) {}

  absl::Status Add(const fs::path& folder, const std::string& prefix) {
    std::error_code error;
    fs::directory_iterator entries(folder, error);
    for (; !error && entries != fs::directory_iterator(); entries.increment(error)) {
      RETURN_IF_ERROR(AddEntry(*entries, prefix));
    }
    return error ? ErrnoStatus(error.value(), folder.string()) : absl::OkStatus();
  }

  ProgramFiles found;

 private:
  absl::Status AddEntry(const fs::directory_entry& entry, const std::string& prefix) {
    const std::string name = entry.path().filename().string();
    if (entry.path() == left_out_ || name == kCompiled) return absl::OkStatus();
    std::error_code error;
    const bool folder = entry.is_directory(error) && !entry.is_symlink(error);
    if (rules_.Ignores(prefix + name, folder)) return absl::OkStatus();
    if (!folder) {
      if (entry.is_regular_file(error)) found.files.push_back(prefix + name);
      return absl::OkStatus();
    }
    if (IsOfTools(name)) return absl::OkStatus();
    const std::string inside = absl::StrCat(prefix, name, "/");
    found.folders.push_back(inside);
    return Add(entry.path(), inside);
  }

  const fs::path left_out_;
  const IgnoreRules rules_;
};

}  // namespace

bool IsOfTools(const std::string& name) {
  return std::find(kOfTools.begin(), kOfTools.end(), name) != kOfTools.end();
}

absl::StatusOr<ProgramFiles> ListProgramFiles(const std::string& folder,
                                              const std::string& left_out) {
  std::error_code error;
  const fs::path root = fs::canonical(folder, error);
  if (error) return ErrnoStatus(error.value(), folder);
  Listing listing(left_out, IgnoreRules(ReadFile((root / kIgnoreFile).string()).value_or("")));
  RETURN_IF_ERROR(listing.Add(root, ""));
  listing.found.root = root.string();
  return std::move(listing.found);
}

}  // namespace traind
