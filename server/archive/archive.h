// The archive of a store: every change of its database, and whole copies now and then, as files in
// a folder that another machine reads, too. docs/FORMATS.md, "The archive", describes the bytes.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace traind {

// 16 random hexadecimal digits: of an archive, or of who has it.
std::string RandomName();

// Pages of a database file as they stand in it after some commit.
struct ChangedPages {
  int page_bytes = 0;          // 0: nothing changed
  int64_t database_pages = 0;  // the size of the database after the commit
  std::string pages;  // each is its number (from 1; 4 bytes, the lowest first) and its bytes
};

// An entry of the log. Entries are numbered from 1 without gaps, each has the digest of the one
// before, and each number is written once, by whoever comes first. So a traind that was succeeded
// finds the next number taken, and cannot add to what its successor has read.
struct ArchiveEntry {
  int64_t number = 0;
  int64_t epoch = 0;    // counts the trainds that had the archive; only grows
  std::string holder;   // names that traind; a word
  std::string before;   // the digest of the entry before; 64 characters
  bool begins = false;  // the first of its epoch
  // The database is that of the base with this number from here on, whatever it was before.
  bool has_base = false;
  ChangedPages change;
};

// A place in the log: after the entry with this number.
struct ArchivePosition {
  int64_t number = 0;
  int64_t epoch = 0;
  std::string digest = std::string(64, '0');

  bool operator==(const ArchivePosition& other) const {
    return number == other.number && epoch == other.epoch && digest == other.digest;
  }
};

// A whole copy of the database as it is after the entry `number`.
struct ArchiveBase {
  int64_t number = 0;
  int64_t epoch = 0;
  std::string digest;  // of that entry
  std::string path;
  int64_t bytes = 0;
  std::string sha256;
};

// The bytes of an entry, and the digest by which the next one names it.
struct EncodedEntry {
  std::string header;  // the change's pages follow it
  std::string digest;
};
EncodedEntry Encode(const ArchiveEntry& entry);

// The files of an archive.
// Threads: safe; each call stands for itself. Errors: those of the system, with the path.
class Archive {
 public:
  // artifacts: the folder of --artifacts. Makes the folders of the archive.
  static absl::StatusOr<Archive> Create(const std::string& artifacts);
  // NotFound: there is no archive.
  static absl::StatusOr<Archive> Open(const std::string& artifacts);

  // A random name that the archive got when it was made.
  const std::string& id() const { return id_; }
  const std::string& folder() const { return folder_; }

  // nullopt: there is no such entry (yet). DataLoss: it is damaged.
  absl::StatusOr<std::optional<ArchiveEntry>> Read(int64_t number, std::string* digest) const;
  // Adds an entry durably. AlreadyExists: somebody else has written that number.
  absl::Status Add(const ArchiveEntry& entry, const EncodedEntry& encoded) const;

  // Those whose entries are there, the newest first. Their content is not read.
  absl::StatusOr<std::vector<ArchiveBase>> Bases() const;
  // Copies the open file `fd` to a base of that entry. Cancelled: `stop` was set meanwhile.
  absl::Status AddBase(int fd, int64_t number, const std::string& digest,
                       const std::atomic<bool>& stop) const;
  // Removes a base that no entry names.
  void RemoveBase(int64_t number, const std::string& digest) const;
  // Keeps the two newest bases, and the entries from the older one on.
  absl::Status RemoveOld() const;

  // Returns the last position: of the newest base and the entries that follow it.
  absl::StatusOr<ArchivePosition> FindEnd() const;
  // Goes on from a position.
  absl::StatusOr<ArchivePosition> FindEnd(ArchivePosition from) const;

 private:
  Archive(std::string folder, std::string id) : folder_(std::move(folder)), id_(std::move(id)) {}
  std::string EntryPath(int64_t number) const;
  std::string BasePath(int64_t number, const std::string& digest) const;

  std::string folder_, id_;
};

}  // namespace traind
