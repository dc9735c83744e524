// The archive of a store: every change of its database, and whole copies now and then, as objects
// that another machine reads, too: files of a folder, or of a bucket. Their bytes:
// docs/FORMATS.md, "The archive".
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "server/objects/object_store.h"

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
  std::string key;
  int64_t bytes = 0;
  std::string sha256;
};

// An entry as it stands in the log, with the digest by which the next one names it.
struct StoredEntry {
  ArchiveEntry entry;
  std::string digest;
};

// The bytes of an entry, and the digest by which the next one names it.
struct EncodedEntry {
  std::string header;  // the change's pages follow it
  std::string digest;
};
EncodedEntry Encode(const ArchiveEntry& entry);

// The objects of an archive.
// Threads: safe; each call stands for itself. Errors: those of the store (object_store.h).
class Archive {
 public:
  using Objects = std::shared_ptr<const ObjectStore>;

  // objects: those of --artifacts. Begins an archive where there is none.
  static absl::StatusOr<Archive> Create(Objects objects);
  // NotFound: there is no archive.
  static absl::StatusOr<Archive> Open(Objects objects);

  // A random name that the archive got when it was made.
  const std::string& id() const { return id_; }
  // For people.
  std::string name() const;
  const ObjectStore& objects() const { return *objects_; }
  // Of a file of the state folder that goes with the archive.
  static std::string FileKey(const std::string& name);
  // Of the lease of an epoch.
  static std::string LeaseKey(int64_t epoch);

  // nullopt: there is no such entry (yet). DataLoss: it is damaged.
  absl::StatusOr<std::optional<ArchiveEntry>> Read(int64_t number, std::string* digest) const;
  // Returns the entries from that number on, or some of them: none if the first is not there (yet).
  // Of a bucket several are read at once, so that a reader is faster than who adds. Errors: of the
  // first.
  absl::StatusOr<std::vector<StoredEntry>> ReadSome(int64_t number) const;
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
  // Goes on from a position. Of a bucket only the last entry is read.
  absl::StatusOr<ArchivePosition> FindEnd(ArchivePosition from) const;

 private:
  absl::StatusOr<ArchivePosition> FindListedEnd(ArchivePosition from) const;
  Archive(Objects objects, std::string id) : objects_(std::move(objects)), id_(std::move(id)) {}

  Objects objects_;
  std::string id_;
};

}  // namespace traind
