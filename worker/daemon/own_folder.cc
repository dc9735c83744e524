#include "worker/daemon/own_folder.h"

#include <absl/strings/str_cat.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <vector>

#include "common/base/job_layout.h"

namespace traind::worker {
namespace {

namespace fs = std::filesystem;

// A process may be about to open it.
constexpr std::chrono::minutes kInUse(5);

struct Entry {
  fs::path path;
  int64_t bytes = 0;
  fs::file_time_type used = fs::file_time_type::min();
};

void AddFile(const fs::path& path, Entry& entry) {
  std::error_code error;
  const auto bytes = fs::file_size(path, error);
  if (!error) entry.bytes += static_cast<int64_t>(bytes);
  const auto changed = fs::last_write_time(path, error);
  if (!error) entry.used = std::max(entry.used, changed);
}

Entry Measure(const fs::path& path) {
  Entry entry;
  entry.path = path;
  std::error_code error;
  if (!fs::is_directory(path, error)) AddFile(path, entry);
  for (auto it = fs::recursive_directory_iterator(path, error);
       !error && it != fs::recursive_directory_iterator(); it.increment(error)) {
    if (it->is_regular_file(error)) AddFile(it->path(), entry);
  }
  return entry;
}

}  // namespace

void TrimOwnFolder(const std::string& state_dir, int64_t max_bytes,
                   const std::set<std::string>& busy) {
  std::vector<Entry> entries;
  int64_t bytes = 0;
  for (const char* folder : {"jobs", "cache", "inputs"}) {
    std::error_code error;
    for (const auto& found : fs::directory_iterator(absl::StrCat(state_dir, "/", folder), error)) {
      entries.push_back(Measure(found.path()));
      bytes += entries.back().bytes;
    }
  }
  std::sort(entries.begin(), entries.end(),
            [](const Entry& a, const Entry& b) { return a.used < b.used; });
  const auto recent = fs::file_time_type::clock::now() - kInUse;
  for (const Entry& entry : entries) {
    if (bytes <= max_bytes || entry.used > recent) return;
    const bool job = entry.path.parent_path().filename() == "jobs";
    if (job && busy.count(entry.path.filename().string()) > 0) continue;
    std::error_code error;
    fs::remove_all(entry.path, error);
    if (!error) bytes -= entry.bytes;
  }
}

}  // namespace traind::worker
