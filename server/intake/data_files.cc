#include "server/intake/data_files.h"

#include <absl/cleanup/cleanup.h>
#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "common/base/data_roots.h"
#include "common/base/durable_file.h"
#include "common/base/refused_files.h"
#include "common/base/status_macros.h"
#include "common/base/suggest.h"
#include "common/data/table/array_file.h"
#include "common/data/table/csv.h"
#include "common/data/table/other_formats.h"
#include "common/data/table/parquet.h"
#include "common/data/table/text_encoding.h"

namespace traind {
namespace {

constexpr size_t kFirstBytes = 4096;

std::string BaseName(const std::string& path) { return path.substr(path.rfind('/') + 1); }

}  // namespace

std::string SomeOf(absl::Span<const std::string> columns) {
  constexpr size_t kNamed = 5;
  const size_t named = std::min(kNamed, columns.size());
  return absl::StrCat(
      "'", absl::StrJoin(columns.first(named), "', '"), "'",
      named < columns.size() ? absl::StrCat(" and ", columns.size() - named, " more") : "");
}

std::string MissingColumn(absl::string_view which, absl::string_view column,
                          const std::vector<std::string>& header) {
  const std::string text = absl::StrCat("the ", which, " file has no column '", column, "'");
  if (header.size() == 1) {
    return absl::StrCat(text, "; its only column is '", header[0], "': ", kDelimiterHint);
  }
  const std::string meant = DidYouMean(column, header);
  if (!meant.empty()) return text + meant;
  return absl::StrCat(text, "; it has ", SomeOf(header));
}

DataFiles::Identity DataFiles::IdentityOf(const struct stat& info) {
  const auto nanoseconds = [](const timespec& time) {
    return time.tv_sec * 1'000'000'000 + time.tv_nsec;
  };
  return {info.st_dev, info.st_ino, info.st_size, nanoseconds(info.st_mtim),
          nanoseconds(info.st_ctim)};
}

absl::StatusOr<int> DataFiles::Open(const std::string& path, struct stat& info,
                                    std::string& resolved) const {
  // O_NONBLOCK keeps a FIFO from blocking the caller.
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd < 0) {
    const int error = errno;
    return WithRefusedFiles(ErrnoStatus(error, absl::StrCat("cannot read ", path)),
                            {{"", FileProblem::kUnreadable}});
  }
  auto close_fd = absl::MakeCleanup([fd] { close(fd); });
  if (fstat(fd, &info) != 0) return ErrnoStatus(errno, absl::StrCat("cannot read ", path));
  // The file that is checked is the one that is read.
  ASSIGN_OR_RETURN(resolved, RealPathOf(fd));
  if (!LiesBelow(resolved, roots_)) {
    return WithRefusedFiles(absl::PermissionDeniedError(absl::StrCat(
                                path, resolved == path ? "" : absl::StrCat(" (", resolved, ")"),
                                " lies outside the data roots: ", absl::StrJoin(roots_, ", "))),
                            {{"", FileProblem::kOutsideRoots}});
  }
  std::move(close_fd).Cancel();
  return fd;
}

absl::StatusOr<std::string> DataFiles::Resolve(const std::string& path) const {
  if (!absl::StartsWith(path, "/")) {
    return absl::InvalidArgumentError(absl::StrCat("'", path, "' is not an absolute path"));
  }
  struct stat info;
  std::string resolved;
  ASSIGN_OR_RETURN(const int fd, Open(path, info, resolved));
  close(fd);
  if (!S_ISREG(info.st_mode)) {
    return absl::InvalidArgumentError(absl::StrCat(path, " is not a regular file"));
  }
  return resolved;
}

absl::StatusOr<std::shared_ptr<const DataFile>> DataFiles::Look(const std::string& path,
                                                                bool folders) {
  if (!absl::StartsWith(path, "/")) {
    return absl::InvalidArgumentError(absl::StrCat("'", path, "' is not an absolute path"));
  }
  // An unchanged file at the same path needs no second look.
  struct stat info;
  if (stat(path.c_str(), &info) == 0) {
    absl::MutexLock lock(&mutex_);
    const auto seen = seen_.find(path);
    if (seen != seen_.end() && seen->second.identity == IdentityOf(info)) {
      return seen->second.result;
    }
  }
  std::string resolved;
  ASSIGN_OR_RETURN(const int fd, Open(path, info, resolved));
  const auto close_fd = absl::MakeCleanup([fd] { close(fd); });
  if (S_ISDIR(info.st_mode) && folders) {
    auto folder = std::make_shared<DataFile>();
    folder->path = resolved;
    folder->folder = true;
    return folder;
  }
  if (!S_ISREG(info.st_mode)) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, S_ISDIR(info.st_mode) ? " is a folder" : " is not a regular file"));
  }
  auto result = Read(fd, resolved, BaseName(path), info.st_size);
  absl::MutexLock lock(&mutex_);
  if (seen_.size() >= kMaxSeen) seen_.clear();
  seen_.insert_or_assign(path, Seen{IdentityOf(info), result});
  return result;
}

namespace {

absl::StatusOr<std::string> ReadFirst(int fd, const std::string& resolved, int64_t bytes) {
  std::string part(static_cast<size_t>(std::min<int64_t>(bytes, kStartBytes)), '\0');
  size_t got = 0;
  while (got < part.size()) {
    const ssize_t n = pread(fd, part.data() + got, part.size() - got, static_cast<off_t>(got));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return ErrnoStatus(errno, absl::StrCat("cannot read ", resolved));
    if (n == 0) break;
    got += static_cast<size_t>(n);
  }
  part.resize(got);
  return part;
}

}  // namespace

absl::StatusOr<std::string> DataFiles::ReadStart(const std::string& path) const {
  struct stat info;
  std::string resolved;
  ASSIGN_OR_RETURN(const int fd, Open(path, info, resolved));
  const auto close_fd = absl::MakeCleanup([fd] { close(fd); });
  return ReadFirst(fd, resolved, info.st_size);
}

absl::StatusOr<TableStart> DataFiles::ReadTableStart(const std::string& path) const {
  struct stat info;
  std::string resolved;
  ASSIGN_OR_RETURN(const int fd, Open(path, info, resolved));
  const auto close_fd = absl::MakeCleanup([fd] { close(fd); });
  ASSIGN_OR_RETURN(std::string part, ReadFirst(fd, resolved, info.st_size));
  const bool whole = static_cast<int64_t>(part.size()) == info.st_size;
  return StartOfTable(std::move(part), whole, BaseName(resolved));
}

absl::StatusOr<std::shared_ptr<const DataFile>> DataFiles::Read(int fd, const std::string& resolved,
                                                                const std::string& name,
                                                                int64_t bytes) {
  ASSIGN_OR_RETURN(std::string part, ReadFirst(fd, resolved, bytes));
  const bool whole = bytes <= static_cast<int64_t>(kStartBytes);
  ASSIGN_OR_RETURN(const TableStart start, StartOfTable(std::move(part), whole, name));
  const absl::string_view text = start.text;
  RETURN_IF_ERROR(RefuseOtherFormats(text, start.name));
  const bool parquet = IsParquet(text);
  if (parquet) RETURN_IF_ERROR(CheckParquetPlugin());
  if (parquet || IsArrayFile(text)) {
    // Arrays and Parquet are checked when the whole file is read, because their columns are spread
    // over it.
    auto file = std::make_shared<DataFile>();
    file->path = resolved;
    file->bytes = bytes;
    file->arrays = true;
    file->parquet = parquet;
    if (!parquet) file->first = std::string(text.substr(0, kFirstBytes));
    return file;
  }
  ASSIGN_OR_RETURN(CsvSample sample, CheckCsvSample(text, start.whole, start.name));
  RETURN_IF_ERROR(CheckCsvText(start.whole ? text : WithoutCutCharacter(text), start.name,
                               DelimiterOf(text, start.name), sample.header));
  auto file = std::make_shared<DataFile>();
  file->path = resolved;
  file->bytes = start.whole ? static_cast<int64_t>(text.size())
                            : static_cast<int64_t>(static_cast<double>(bytes) * start.growth);
  file->header = std::move(sample.header);
  file->repeated = std::move(sample.repeated);
  return file;
}

}  // namespace traind
