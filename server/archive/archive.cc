#include "server/archive/archive.h"

#include <absl/strings/match.h>
#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>
#include <absl/strings/str_split.h>
#include <absl/strings/strip.h>
#include <absl/time/time.h>

#include <algorithm>
#include <atomic>
#include <random>
#include <thread>

#include "common/base/durable_file.h"
#include "common/base/status_macros.h"

namespace traind {
namespace {

constexpr char kEntryMagic[] = "traind-change-1";
constexpr char kBaseMagic[] = "traind-base-1";
constexpr char kFolder[] = "store";
constexpr char kIdKey[] = "store/id";
constexpr char kNoteSuffix[] = ".note";
constexpr size_t kBasesKept = 2;
constexpr int kReadAhead = 15;

constexpr char kLog[] = "store/log/";
constexpr char kBases[] = "store/bases/";

std::string EntryKey(int64_t number) { return absl::StrFormat("%s%020d", kLog, number); }

std::string BaseKey(int64_t number, const std::string& digest) {
  return absl::StrFormat("%s%020d-%s", kBases, number, digest.substr(0, 16));
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
absl::StatusOr<ArchiveBase> ReadNote(const ObjectStore& objects, const std::string& key) {
  ASSIGN_OR_RETURN(const std::string text, objects.Read(key));
  const std::vector<absl::string_view> words =
      absl::StrSplit(absl::StripTrailingAsciiWhitespace(text), ' ');
  ArchiveBase base;
  if (words.size() != 5 || words[0] != kBaseMagic || !absl::SimpleAtoi(words[1], &base.number) ||
      !absl::SimpleAtoi(words[3], &base.bytes)) {
    return absl::DataLossError(absl::StrCat(objects.NameOf(key), " is damaged"));
  }
  base.digest = std::string(words[2]);
  base.sha256 = std::string(words[4]);
  base.key = std::string(absl::StripSuffix(key, kNoteSuffix));
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

absl::StatusOr<Archive> Archive::Create(Objects objects) {
  const std::string id = absl::StrCat(RandomName(), "\n");
  const absl::Status made = objects->WriteOnce(kIdKey, {absl::string_view(id)});
  if (!made.ok() && !absl::IsAlreadyExists(made)) return made;
  return Open(std::move(objects));
}

absl::StatusOr<Archive> Archive::Open(Objects objects) {
  const auto id = objects->Read(kIdKey);
  if (absl::IsNotFound(id.status())) {
    return absl::NotFoundError(
        absl::StrCat(objects->NameOf(kFolder), ": there is no archive of a traind's store"));
  }
  RETURN_IF_ERROR(id.status());
  return Archive(std::move(objects), std::string(absl::StripTrailingAsciiWhitespace(*id)));
}

std::string Archive::name() const { return objects_->NameOf(kFolder); }

std::string Archive::FileKey(const std::string& name) {
  return absl::StrCat(kFolder, "/files/", name);
}

std::string Archive::LeaseKey(int64_t epoch) { return absl::StrCat(kFolder, "/lease-", epoch); }

absl::StatusOr<std::optional<ArchiveEntry>> Archive::Read(int64_t number,
                                                          std::string* digest) const {
  const std::string key = EntryKey(number);
  const auto bytes = objects_->Read(key);
  if (absl::IsNotFound(bytes.status())) return std::optional<ArchiveEntry>();
  RETURN_IF_ERROR(bytes.status());
  const std::string name = objects_->NameOf(key);
  ASSIGN_OR_RETURN(ArchiveEntry entry, Decode(*bytes, name, digest));
  if (entry.number != number) return absl::DataLossError(absl::StrCat(name, " is another entry"));
  return std::optional<ArchiveEntry>(std::move(entry));
}

absl::StatusOr<std::vector<StoredEntry>> Archive::ReadSome(int64_t number) const {
  StoredEntry first;
  ASSIGN_OR_RETURN(auto entry, Read(number, &first.digest));
  std::vector<StoredEntry> some;
  if (!entry) return some;
  first.entry = *std::move(entry);
  some.push_back(std::move(first));
  if (objects_->is_folder()) return some;
  std::vector<StoredEntry> ahead(kReadAhead);
  std::vector<char> there(kReadAhead, 0);
  std::vector<std::thread> threads;
  for (int i = 0; i < kReadAhead; ++i) {
    threads.emplace_back([&, i] {
      const auto slot = static_cast<size_t>(i);
      auto next = Read(number + 1 + i, &ahead[slot].digest);
      if (!next.ok() || !next->has_value()) return;
      ahead[slot].entry = **std::move(next);
      there[slot] = 1;
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (size_t i = 0; i < ahead.size() && there[i] != 0; ++i) some.push_back(std::move(ahead[i]));
  return some;
}

absl::Status Archive::Add(const ArchiveEntry& entry, const EncodedEntry& encoded) const {
  return objects_->WriteOnce(EntryKey(entry.number), {absl::string_view(encoded.header),
                                                      absl::string_view(entry.change.pages)});
}

absl::StatusOr<std::vector<ArchiveBase>> Archive::Bases() const {
  ASSIGN_OR_RETURN(const std::vector<ObjectInfo> listed, objects_->List(kBases));
  std::vector<ArchiveBase> bases;
  for (const ObjectInfo& object : listed) {
    if (!absl::EndsWith(object.key, kNoteSuffix)) continue;
    auto base = ReadNote(*objects_, object.key);
    if (!base.ok()) continue;
    std::string digest;
    const auto entry = Read(base->number, &digest);
    // Who lost the race for a number may have left a base that no entry names.
    if (!entry.ok() || !entry->has_value() || digest != base->digest) continue;
    base->epoch = (*entry)->epoch;
    bases.push_back(*std::move(base));
  }
  std::sort(bases.begin(), bases.end(),
            [](const ArchiveBase& a, const ArchiveBase& b) { return a.number > b.number; });
  return bases;
}

absl::Status Archive::AddBase(int fd, int64_t number, const std::string& digest,
                              const std::atomic<bool>& stop) const {
  const std::string key = BaseKey(number, digest);
  ASSIGN_OR_RETURN(const FileDigest file, DigestFile(absl::StrCat("/proc/self/fd/", fd)));
  RETURN_IF_ERROR(objects_->WriteFile(key, {fd, absl::UnixEpoch()}, stop));
  return objects_->Write(
      absl::StrCat(key, kNoteSuffix),
      absl::StrCat(kBaseMagic, " ", number, " ", digest, " ", file.bytes, " ", file.sha256, "\n"));
}

void Archive::RemoveBase(int64_t number, const std::string& digest) const {
  const std::string key = BaseKey(number, digest);
  objects_->Remove(absl::StrCat(key, kNoteSuffix)).IgnoreError();
  objects_->Remove(key).IgnoreError();
}

absl::Status Archive::RemoveOld() const {
  ASSIGN_OR_RETURN(const std::vector<ArchiveBase> bases, Bases());
  if (bases.size() < kBasesKept) return absl::OkStatus();
  for (size_t i = kBasesKept; i < bases.size(); ++i) RemoveBase(bases[i].number, bases[i].digest);
  const std::string first = EntryKey(bases[kBasesKept - 1].number);
  ASSIGN_OR_RETURN(const std::vector<ObjectInfo> entries, objects_->List(kLog));
  for (const ObjectInfo& entry : entries) {
    if (entry.key < first) objects_->Remove(entry.key).IgnoreError();
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

// Followers check that the entries follow each other.
absl::StatusOr<ArchivePosition> Archive::FindListedEnd(ArchivePosition from) const {
  ASSIGN_OR_RETURN(const std::vector<ObjectInfo> listed, objects_->List(kLog));
  int64_t last = from.number;
  for (const ObjectInfo& object : listed) {
    if (object.key == EntryKey(last + 1)) ++last;
  }
  if (last == from.number) return from;
  std::string digest;
  ASSIGN_OR_RETURN(const auto entry, Read(last, &digest));
  if (!entry) return absl::UnavailableError(absl::StrCat(name(), ": an entry vanished"));
  return ArchivePosition{last, (*entry).epoch, digest};
}

absl::StatusOr<ArchivePosition> Archive::FindEnd(ArchivePosition from) const {
  if (!objects_->is_folder()) return FindListedEnd(std::move(from));
  while (true) {
    std::string digest;
    ASSIGN_OR_RETURN(const auto entry, Read(from.number + 1, &digest));
    if (!entry) return from;
    if (entry->before != from.digest) {
      return absl::DataLossError(absl::StrCat(objects_->NameOf(EntryKey(from.number + 1)),
                                              " does not follow the entry before it"));
    }
    from = {entry->number, entry->epoch, digest};
  }
}

}  // namespace traind
