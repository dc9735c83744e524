#include "server/archive/archive.h"

#include <absl/cleanup/cleanup.h>
#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>
#include <absl/strings/str_split.h>
#include <absl/strings/strip.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <filesystem>
#include <random>
#include <system_error>

#include "common/base/durable_file.h"
#include "common/base/status_macros.h"
#include "common/base/write_all.h"

namespace traind {
namespace {

namespace fs = std::filesystem;

constexpr char kEntryMagic[] = "traind-change-1";
constexpr char kBaseMagic[] = "traind-base-1";
constexpr char kFolder[] = "store";
constexpr char kNoteSuffix[] = ".note";
constexpr size_t kBasesKept = 2;

// Writes a file that is whole or absent, and never replaces one. AlreadyExists: the path is taken.
absl::Status WriteOnce(const std::string& path, absl::Span<const absl::string_view> parts) {
  static std::atomic<uint64_t> counter{0};
  // Two machines may have processes with one number.
  static const uint64_t process = std::random_device()();
  const std::string temporary =
      absl::StrCat(path, kTemporaryMark, process, "-", counter.fetch_add(1));
  const int fd = open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0) return ErrnoStatus(errno, absl::StrCat("cannot create ", temporary));
  const absl::Cleanup remove = [&] {
    close(fd);
    unlink(temporary.c_str());
  };
  for (const absl::string_view part : parts) RETURN_IF_ERROR(WriteAll(fd, part, path));
  if (fsync(fd) != 0) return ErrnoStatus(errno, absl::StrCat("cannot sync ", path));
  if (link(temporary.c_str(), path.c_str()) != 0) {
    const int error = errno;
    // A file server may have made the link and lost its answer.
    struct stat about = {};
    const bool linked = fstat(fd, &about) == 0 && about.st_nlink == 2;
    if (!linked && error == EEXIST) return absl::AlreadyExistsError(absl::StrCat(path, " exists"));
    if (!linked) return ErrnoStatus(error, absl::StrCat("cannot create ", path));
  }
  return SyncDir(path.substr(0, path.rfind('/')));
}

std::string HeaderWithoutDigest(const ArchiveEntry& entry) {
  const ChangedPages& change = entry.change;
  return absl::StrCat(kEntryMagic, " ", entry.number, " ", entry.epoch, " ", entry.holder, " ",
                      entry.before, " ", entry.begins ? "begins" : "goes-on", " ",
                      entry.has_base ? "base" : "-", " ", change.page_bytes, " ",
                      change.database_pages, " ", change.pages.size());
}

absl::StatusOr<ArchiveEntry> Decode(absl::string_view bytes, const std::string& path,
                                    std::string* digest) {
  const absl::Status damaged = absl::DataLossError(absl::StrCat(path, " is damaged"));
  const size_t end = bytes.find('\n');
  if (end == bytes.npos) return damaged;
  const std::vector<absl::string_view> words = absl::StrSplit(bytes.substr(0, end), ' ');
  ArchiveEntry entry;
  size_t page_bytes = 0;
  if (words.size() != 11 || words[0] != kEntryMagic || !absl::SimpleAtoi(words[1], &entry.number) ||
      !absl::SimpleAtoi(words[2], &entry.epoch) ||
      !absl::SimpleAtoi(words[7], &entry.change.page_bytes) ||
      !absl::SimpleAtoi(words[8], &entry.change.database_pages) ||
      !absl::SimpleAtoi(words[9], &page_bytes)) {
    return damaged;
  }
  entry.holder = std::string(words[3]);
  entry.before = std::string(words[4]);
  entry.begins = words[5] == "begins";
  entry.has_base = words[6] == "base";
  entry.change.pages = std::string(bytes.substr(end + 1));
  if (entry.change.pages.size() != page_bytes) return damaged;
  const EncodedEntry again = Encode(entry);
  if (again.header != bytes.substr(0, end + 1)) return damaged;
  *digest = again.digest;
  return entry;
}

// A base's name is its entry's number and the beginning of that entry's digest.
absl::StatusOr<ArchiveBase> ReadNote(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  const std::vector<absl::string_view> words =
      absl::StrSplit(absl::StripTrailingAsciiWhitespace(text), ' ');
  ArchiveBase base;
  if (words.size() != 5 || words[0] != kBaseMagic || !absl::SimpleAtoi(words[1], &base.number) ||
      !absl::SimpleAtoi(words[3], &base.bytes)) {
    return absl::DataLossError(absl::StrCat(path, " is damaged"));
  }
  base.digest = std::string(words[2]);
  base.sha256 = std::string(words[4]);
  base.path = std::string(absl::StripSuffix(path, kNoteSuffix));
  return base;
}

}  // namespace

std::string RandomName() {
  std::random_device random;
  return absl::StrFormat("%08x%08x", random(), random());
}

EncodedEntry Encode(const ArchiveEntry& entry) {
  EncodedEntry encoded;
  encoded.header = HeaderWithoutDigest(entry);
  encoded.digest = Sha256Hex({absl::string_view(encoded.header), entry.change.pages});
  absl::StrAppend(&encoded.header, " ", encoded.digest, "\n");
  return encoded;
}

absl::StatusOr<Archive> Archive::Create(const std::string& artifacts) {
  const std::string folder = absl::StrCat(artifacts, "/", kFolder);
  RETURN_IF_ERROR(MakeDirs(absl::StrCat(folder, "/log")));
  RETURN_IF_ERROR(MakeDirs(absl::StrCat(folder, "/bases")));
  const std::string id = absl::StrCat(RandomName(), "\n");
  const absl::Status made = WriteOnce(absl::StrCat(folder, "/id"), {absl::string_view(id)});
  if (!made.ok() && !absl::IsAlreadyExists(made)) return made;
  return Open(artifacts);
}

absl::StatusOr<Archive> Archive::Open(const std::string& artifacts) {
  const std::string folder = absl::StrCat(artifacts, "/", kFolder);
  const auto id = ReadFile(absl::StrCat(folder, "/id"));
  if (absl::IsNotFound(id.status())) {
    return absl::NotFoundError(absl::StrCat(artifacts, " has no archive of a traind's store"));
  }
  RETURN_IF_ERROR(id.status());
  return Archive(folder, std::string(absl::StripTrailingAsciiWhitespace(*id)));
}

std::string Archive::EntryPath(int64_t number) const {
  return absl::StrFormat("%s/log/%020d", folder_, number);
}

std::string Archive::BasePath(int64_t number, const std::string& digest) const {
  return absl::StrFormat("%s/bases/%020d-%s", folder_, number, digest.substr(0, 16));
}

absl::StatusOr<std::optional<ArchiveEntry>> Archive::Read(int64_t number,
                                                          std::string* digest) const {
  const std::string path = EntryPath(number);
  const auto bytes = ReadFile(path);
  if (absl::IsNotFound(bytes.status())) return std::optional<ArchiveEntry>();
  RETURN_IF_ERROR(bytes.status());
  ASSIGN_OR_RETURN(ArchiveEntry entry, Decode(*bytes, path, digest));
  if (entry.number != number) return absl::DataLossError(absl::StrCat(path, " is another entry"));
  return std::optional<ArchiveEntry>(std::move(entry));
}

absl::Status Archive::Add(const ArchiveEntry& entry, const EncodedEntry& encoded) const {
  return WriteOnce(EntryPath(entry.number),
                   {absl::string_view(encoded.header), absl::string_view(entry.change.pages)});
}

absl::StatusOr<std::vector<ArchiveBase>> Archive::Bases() const {
  std::vector<ArchiveBase> bases;
  std::error_code error;
  for (fs::directory_iterator it(absl::StrCat(folder_, "/bases"), error), end; !error && it != end;
       it.increment(error)) {
    if (it->path().extension() != kNoteSuffix) continue;
    auto base = ReadNote(it->path().string());
    if (!base.ok()) continue;
    std::string digest;
    const auto entry = Read(base->number, &digest);
    // Who lost the race for a number may have left a base that no entry names.
    if (!entry.ok() || !entry->has_value() || digest != base->digest) continue;
    base->epoch = (*entry)->epoch;
    bases.push_back(*std::move(base));
  }
  if (error) return ErrnoStatus(error.value(), absl::StrCat("cannot read ", folder_, "/bases"));
  std::sort(bases.begin(), bases.end(),
            [](const ArchiveBase& a, const ArchiveBase& b) { return a.number > b.number; });
  return bases;
}

absl::Status Archive::AddBase(int fd, int64_t number, const std::string& digest,
                              const std::atomic<bool>& stop) const {
  const std::string path = BasePath(number, digest);
  ASSIGN_OR_RETURN(const auto writer, DurableWriter::Create(path));
  std::string block(1 << 20, '\0');
  for (off_t at = 0;;) {
    if (stop) return absl::CancelledError("traind ends");
    const ssize_t got = pread(fd, block.data(), block.size(), at);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return ErrnoStatus(errno, "cannot read the database");
    if (got == 0) break;
    RETURN_IF_ERROR(writer->Append(absl::string_view(block.data(), static_cast<size_t>(got))));
    at += got;
  }
  ASSIGN_OR_RETURN(const FileDigest file, writer->Commit());
  return WriteFileDurably(
      absl::StrCat(path, kNoteSuffix),
      absl::StrCat(kBaseMagic, " ", number, " ", digest, " ", file.bytes, " ", file.sha256, "\n"));
}

void Archive::RemoveBase(int64_t number, const std::string& digest) const {
  const std::string path = BasePath(number, digest);
  unlink(absl::StrCat(path, kNoteSuffix).c_str());
  unlink(path.c_str());
}

absl::Status Archive::RemoveOld() const {
  ASSIGN_OR_RETURN(const std::vector<ArchiveBase> bases, Bases());
  if (bases.size() < kBasesKept) return absl::OkStatus();
  for (size_t i = kBasesKept; i < bases.size(); ++i) RemoveBase(bases[i].number, bases[i].digest);
  const std::string first = EntryPath(bases[kBasesKept - 1].number);
  std::error_code error;
  for (fs::directory_iterator it(absl::StrCat(folder_, "/log"), error), end; !error && it != end;
       it.increment(error)) {
    if (it->path().string() < first) unlink(it->path().c_str());
  }
  return absl::OkStatus();
}

absl::StatusOr<ArchivePosition> Archive::FindEnd() const {
  ASSIGN_OR_RETURN(const std::vector<ArchiveBase> bases, Bases());
  if (!bases.empty()) {
    const ArchiveBase& newest = bases.front();
    return FindEnd(ArchivePosition{newest.number, newest.epoch, newest.digest});
  }
  return FindEnd(ArchivePosition());
}

absl::StatusOr<ArchivePosition> Archive::FindEnd(ArchivePosition from) const {
  while (true) {
    std::string digest;
    ASSIGN_OR_RETURN(const auto entry, Read(from.number + 1, &digest));
    if (!entry) return from;
    if (entry->before != from.digest) {
      return absl::DataLossError(
          absl::StrCat(EntryPath(from.number + 1), " does not follow the entry before it"));
    }
    from = {entry->number, entry->epoch, digest};
  }
}

}  // namespace traind
