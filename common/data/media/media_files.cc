#include "common/data/media/media_files.h"

#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <errno.h>
#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>

#include "common/base/durable_file.h"
#include "common/base/status_macros.h"
#include "common/data/image/image_folder.h"
#include "common/data/table/array_file.h"
#include "common/data/table/mapped_file.h"
#include "common/data/table/packed_table.h"
#include "common/data/table/table_text.h"
#include "common/data/table/text_column.h"
#include "common/data/volume/file_pair.h"

namespace traind {
namespace {

namespace fs = std::filesystem;

absl::StatusOr<std::string> RealPath(const std::string& path) {
  const std::unique_ptr<char, void (*)(void*)> real(realpath(path.c_str(), nullptr), free);
  if (real == nullptr) return ErrnoStatus(errno, absl::StrCat("cannot read ", path));
  return std::string(real.get());
}

// Appends what is in and below root/inside. Links count as what they point to.
absl::Status Walk(const std::string& inside, int depth, MediaFiles& found) {
  constexpr int kMostDepth = 16;
  const std::string folder = inside.empty() ? found.root : absl::StrCat(found.root, "/", inside);
  if (depth > kMostDepth) {
    return absl::InvalidArgumentError(
        absl::StrCat(folder, ": folders lie in each other more than ", kMostDepth, " deep"));
  }
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename().string();
    if (absl::StartsWith(name, ".")) continue;
    const std::string path = inside.empty() ? name : absl::StrCat(inside, "/", name);
    std::error_code gone;
    if (at->is_directory(gone)) {
      found.names.push_back(path + "/");
      RETURN_IF_ERROR(Walk(path, depth + 1, found));
    } else {
      (HasImageName(name) ? found.files : found.names).push_back(path);
    }
  }
  return error ? ErrnoStatus(error.value(), absl::StrCat("cannot read the folder ", folder))
               : absl::OkStatus();
}

absl::Status AddNamedFiles(const CsvFile& table, const std::vector<std::string>& columns,
                           MediaFiles& found) {
  for (const std::string& column : columns) {
    auto fields = ReadTextColumn(table, column);
    if (absl::IsNotFound(fields.status())) {
      if (&column != &columns.front()) continue;
      return absl::InvalidArgumentError(fields.status().message());
    }
    RETURN_IF_ERROR(fields.status());
    for (std::string& file : *fields) {
      if (file.empty()) continue;
      const std::string other = OtherOfPair(absl::StrCat(found.root, "/", file));
      if (!other.empty()) found.files.push_back(other.substr(found.root.size() + 1));
      found.files.push_back(std::move(file));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::optional<MediaFiles>> ListMediaFiles(const std::string& path,
                                                         const std::vector<std::string>& columns,
                                                         bool folders, const std::string& scratch) {
  MediaFiles found;
  ASSIGN_OR_RETURN(const std::string real, RealPath(path));
  std::error_code error;
  if (folders && fs::is_directory(real, error)) {
    found.root = real;
    RETURN_IF_ERROR(Walk("", 0, found));
    return found;
  }
  ASSIGN_OR_RETURN(const auto file, MappedFile::Open(real, MapUse::kStream));
  // Arrays have their pixels themselves, and a Parquet table is none of images.
  const bool packed = IsPackedTable(file->bytes());
  if (!packed && (IsArrayFile(file->bytes()) || absl::StartsWith(file->bytes(), "PAR1"))) {
    return std::optional<MediaFiles>();
  }
  found.root = real.substr(0, real.rfind('/'));
  found.table = real.substr(real.rfind('/') + 1);
  ASSIGN_OR_RETURN(const auto text, TableText::Of(file->bytes(), found.table, scratch));
  found.files.push_back(found.table);
  RETURN_IF_ERROR(AddNamedFiles(text->csv(), columns, found));
  return found;
}

}  // namespace traind
