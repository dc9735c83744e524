#include "common/data/image/image_folder.h"

#include <absl/strings/ascii.h>
#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "common/base/durable_file.h"
#include "common/base/status_macros.h"
#include "common/data/table/csv.h"

namespace traind {
namespace {

namespace fs = std::filesystem;

constexpr int kMostDepth = 16;

struct Entry {
  std::string name;
  bool folder = false;
};

// Returns the entries sorted by name; links count as what they point to.
absl::StatusOr<std::vector<Entry>> Entries(const std::string& folder) {
  std::error_code error;
  std::vector<Entry> entries;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    std::string name = at->path().filename().string();
    if (absl::StartsWith(name, ".")) continue;
    std::error_code gone;
    entries.push_back({std::move(name), at->is_directory(gone)});
  }
  if (error) return ErrnoStatus(error.value(), absl::StrCat("cannot read the folder ", folder));
  std::sort(entries.begin(), entries.end(),
            [](const Entry& a, const Entry& b) { return a.name < b.name; });
  return entries;
}

// Appends the images in and below root/inside.
absl::Status Collect(const std::string& root, const std::string& inside, int depth,
                     std::vector<std::string>& images, int64_t& others) {
  const std::string folder = inside.empty() ? root : absl::StrCat(root, "/", inside);
  if (depth > kMostDepth) {
    return absl::InvalidArgumentError(
        absl::StrCat(folder, ": folders lie in each other more than ", kMostDepth, " deep"));
  }
  ASSIGN_OR_RETURN(const std::vector<Entry> entries, Entries(folder));
  for (const Entry& entry : entries) {
    std::string path = inside.empty() ? entry.name : absl::StrCat(inside, "/", entry.name);
    if (entry.folder) {
      RETURN_IF_ERROR(Collect(root, path, depth + 1, images, others));
    } else if (HasImageName(entry.name)) {
      images.push_back(std::move(path));
    } else {
      ++others;
    }
  }
  return absl::OkStatus();
}

void WarnOfOthers(const std::string& folder, int64_t others, ImageFolder& result) {
  if (others == 0) return;
  result.warnings.push_back(absl::StrCat(folder, ": ", others, others == 1 ? " file" : " files",
                                         " not named .jpg, .jpeg or .png left out"));
}

absl::Status NoClassFolders(const std::string& folder) {
  return absl::InvalidArgumentError(
      absl::StrCat(folder, " has no folders in it: a folder of images has one folder per class"));
}

}  // namespace

bool HasImageName(absl::string_view name) {
  const std::string lower = absl::AsciiStrToLower(name);
  return absl::EndsWith(lower, ".jpg") || absl::EndsWith(lower, ".jpeg") ||
         absl::EndsWith(lower, ".png");
}

absl::StatusOr<ImageFolder> ListClassFolders(const std::string& folder, absl::string_view column,
                                             absl::string_view target) {
  if (column == target) {
    return absl::InvalidArgumentError(
        absl::StrCat("column '", column, "' is both the image and the target"));
  }
  ASSIGN_OR_RETURN(const std::vector<Entry> entries, Entries(folder));
  ImageFolder result;
  result.manifest = absl::StrCat(CsvField(column), ",", CsvField(target), "\n");
  int64_t others = 0;
  int64_t direct = 0;  // images that lie in a class's folder itself
  for (const Entry& entry : entries) {
    if (!entry.folder) {
      ++others;
      continue;
    }
    std::vector<std::string> images;
    RETURN_IF_ERROR(Collect(folder, entry.name, 1, images, others));
    if (images.empty()) {
      return absl::InvalidArgumentError(absl::StrCat(
          folder, "/", entry.name, ": there is no image (.jpg, .jpeg, .png) of this class"));
    }
    for (const std::string& image : images) {
      direct += image.find('/', entry.name.size() + 1) == std::string::npos;
      absl::StrAppend(&result.manifest, CsvField(image), ",", CsvField(entry.name), "\n");
    }
    result.files += static_cast<int64_t>(images.size());
    result.classes.push_back(entry.name);
  }
  if (result.classes.empty()) return NoClassFolders(folder);
  if (direct == 0) {
    result.warnings.push_back(absl::StrCat(
        folder, ": no class has images of its own, only folders with some; the classes ", "are ",
        absl::StrJoin(result.classes, ", "), ". Is the folder of the classes ",
        "one level below?"));
  }
  WarnOfOthers(folder, others, result);
  return result;
}

absl::StatusOr<ImageFolder> ListImages(const std::string& folder, absl::string_view column) {
  ImageFolder result;
  std::vector<std::string> images;
  int64_t others = 0;
  RETURN_IF_ERROR(Collect(folder, "", 0, images, others));
  if (images.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(folder, ": there is no image (.jpg, .jpeg, .png) in it"));
  }
  result.manifest = absl::StrCat(CsvField(column), "\n");
  for (const std::string& image : images) {
    absl::StrAppend(&result.manifest, CsvField(image), "\n");
  }
  result.files = static_cast<int64_t>(images.size());
  WarnOfOthers(folder, others, result);
  return result;
}

absl::Status CheckClassFolders(const std::string& folder) {
  ASSIGN_OR_RETURN(const std::vector<Entry> entries, Entries(folder));
  const auto is_folder = [](const Entry& entry) { return entry.folder; };
  if (std::none_of(entries.begin(), entries.end(), is_folder)) return NoClassFolders(folder);
  return absl::OkStatus();
}

}  // namespace traind
