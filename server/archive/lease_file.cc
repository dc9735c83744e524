#include "server/archive/lease_file.h"

#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_split.h>

#include <vector>

#include "common/base/durable_file.h"
#include "common/base/status_macros.h"
#include "server/archive/archive.h"

namespace traind {
namespace {

constexpr char kMagic[] = "traind-lease-1";
constexpr size_t kBytes = 512;
// So many epochs back files are looked for; a process that was killed may have left some.
constexpr int64_t kLeftBehind = 8;

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

absl::Status WriteLease(const ObjectStore& objects, const LeaseNote& note) {
  return objects.WriteOften(Archive::LeaseKey(note.epoch), ToText(note));
}

absl::StatusOr<std::optional<LeaseNote>> ReadLease(const ObjectStore& objects, int64_t epoch) {
  const auto text = objects.Read(Archive::LeaseKey(epoch));
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

void RemoveLeasesBefore(const ObjectStore& objects, int64_t epoch) {
  for (int64_t old = epoch - 1; old > 0 && old >= epoch - kLeftBehind; --old) {
    objects.Remove(Archive::LeaseKey(old)).IgnoreError();
  }
}

}  // namespace traind
