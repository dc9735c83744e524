#include "server/archive/lease_file.h"

#include <absl/cleanup/cleanup.h>
#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_split.h>
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <vector>

#include "common/base/durable_file.h"
#include "common/base/status_macros.h"

namespace traind {
namespace {

constexpr char kMagic[] = "traind-lease-1";
constexpr size_t kBytes = 512;
// So many epochs back files are looked for; a process that was killed may have left some.
constexpr int64_t kLeftBehind = 8;

std::string PathOf(const std::string& folder, int64_t epoch) {
  return absl::StrCat(folder, "/lease-", epoch);
}

std::string ToText(const LeaseNote& note) {
  std::string text =
      absl::StrCat(kMagic, " ", note.epoch, " ", note.beat, " ", note.holder, " ",
                   note.host.empty() ? "?" : note.host, " ", absl::ToInt64Milliseconds(note.ttl),
                   " ", note.released ? "released" : "held");
  absl::StrAppend(&text, " ", Sha256Hex(text).substr(0, 16), "\n");
  text.resize(kBytes, ' ');
  return text;
}

}  // namespace

absl::Status WriteLease(const std::string& archive_folder, const LeaseNote& note) {
  const std::string path = PathOf(archive_folder, note.epoch);
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0) return ErrnoStatus(errno, absl::StrCat("cannot open ", path));
  const absl::Cleanup closer = [fd] { close(fd); };
  const std::string text = ToText(note);
  const ssize_t wrote = pwrite(fd, text.data(), text.size(), 0);
  if (wrote != static_cast<ssize_t>(text.size())) {
    return ErrnoStatus(wrote < 0 ? errno : EIO, absl::StrCat("cannot write ", path));
  }
  // Where the folder is that of a file server, this sends it there.
  if (fdatasync(fd) != 0) return ErrnoStatus(errno, absl::StrCat("cannot sync ", path));
  return absl::OkStatus();
}

absl::StatusOr<std::optional<LeaseNote>> ReadLease(const std::string& archive_folder,
                                                   int64_t epoch) {
  const auto text = ReadFile(PathOf(archive_folder, epoch));
  if (absl::IsNotFound(text.status())) return std::optional<LeaseNote>();
  RETURN_IF_ERROR(text.status());
  const std::vector<std::string> words = absl::StrSplit(*text, absl::ByAnyChar(" \n"));
  LeaseNote note;
  int64_t ttl_ms = 0;
  if (words.size() < 8 || words[0] != kMagic || !absl::SimpleAtoi(words[1], &note.epoch) ||
      !absl::SimpleAtoi(words[2], &note.beat) || !absl::SimpleAtoi(words[5], &ttl_ms)) {
    return std::optional<LeaseNote>();
  }
  note.holder = words[3];
  note.host = words[4];
  note.ttl = absl::Milliseconds(ttl_ms);
  note.released = words[6] == "released";
  if (note.epoch != epoch || ToText(note) != *text) return std::optional<LeaseNote>();
  return std::optional<LeaseNote>(std::move(note));
}

void RemoveLeasesBefore(const std::string& archive_folder, int64_t epoch) {
  for (int64_t old = epoch - 1; old > 0 && old >= epoch - kLeftBehind; --old) {
    unlink(PathOf(archive_folder, old).c_str());
  }
}

}  // namespace traind
