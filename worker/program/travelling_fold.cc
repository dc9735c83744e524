#include "worker/program/travelling_fold.h"

#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/strip.h>
#include <errno.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <system_error>
#include <vector>

#include "common/base/disk_guard.h"
#include "common/base/durable_file.h"
#include "common/base/job_layout.h"
#include "common/base/status_macros.h"
#include "common/transfer/folder_pack.h"

namespace traind {
namespace {

namespace fs = std::filesystem;

// In the fold's folder: a pack as it was received, with its Attempt's number; what is moved from
// there; a mark that the copies in it are not in their place yet.
constexpr char kBrought[] = "brought-", kTaking[] = "taking", kPutBack[] = "put-back";
constexpr char kTries[] = "tries";

absl::Status AsStatus(const std::error_code& error, const std::string& path) {
  return error ? ErrnoStatus(error.value(), path) : absl::OkStatus();
}

std::vector<std::string> NamesIn(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    names.push_back(it->path().filename().string());
  }
  return names;
}

// Appends the files below `root`/`folder`, relative to root.
void AddFiles(const std::string& root, const std::string& folder, std::vector<std::string>& files) {
  if (folder.empty()) return;
  ForEachFile(absl::StrCat(root, "/", folder), [&](const ResultFile& file) {
    files.push_back(absl::StrCat(folder, "/", file.name));
  }).IgnoreError();
}

}  // namespace

TravellingFold::TravellingFold(std::string state_dir, std::string job, ProgramPack own)
    : state_dir_(std::move(state_dir)),
      job_(std::move(job)),
      own_(own),
      dir_(absl::StrCat(state_dir_, "/", ProgramDir(job_, own.fold, own.trial))) {}

int64_t TravellingFold::LastAttempt() const { return LastProgramAttempt(dir_); }

absl::Status TravellingFold::NoteAttempt() const {
  return WriteFileDurably(InDir(kProgramAttemptFile), absl::StrCat(own_.attempt));
}

// The pack itself stays, for Attempts elsewhere.
absl::Status TravellingFold::Unpack(const ProgramPack& pack) const {
  const std::string path = absl::StrCat(state_dir_, "/", ProgramPackPath(job_, pack));
  const std::string copy = InDir("brought.pack");
  unlink(copy.c_str());
  if (link(path.c_str(), copy.c_str()) != 0) return ErrnoStatus(errno, copy);
  return UnpackFolder(copy, InDir(absl::StrCat(kBrought, pack.attempt)));
}

// Removes all but what was brought.
absl::Status TravellingFold::Clear(const std::string& brought) const {
  std::error_code error;
  for (const std::string& name : NamesIn(dir_)) {
    if (name == brought || name == kFoldLock) continue;
    fs::remove_all(InDir(name), error);
    RETURN_IF_ERROR(AsStatus(error, InDir(name)));
  }
  return absl::OkStatus();
}

absl::StatusOr<int64_t> TravellingFold::Take() const {
  const int64_t last = LastAttempt();
  const std::optional<ProgramPack> pack =
      NewestProgramPack(ProgramPacksIn(state_dir_, job_), job_, last, own_);
  if (pack) RETURN_IF_ERROR(Unpack(*pack));
  int64_t from = 0;
  for (const std::string& name : NamesIn(dir_)) {
    absl::string_view rest = name;
    int64_t number = 0;
    const bool brought = absl::ConsumePrefix(&rest, kBrought) && absl::SimpleAtoi(rest, &number);
    if (brought && number > last) from = std::max(from, number);
  }
  std::error_code error;
  if (from > 0) {
    const std::string brought = absl::StrCat(kBrought, from);
    RETURN_IF_ERROR(Clear(brought));
    // From here on a process that dies leaves the rest of the moves to the next one.
    RETURN_IF_ERROR(WriteFileDurably(absl::StrCat(InDir(brought), "/", kPutBack), ""));
    RETURN_IF_ERROR(WriteFileDurably(absl::StrCat(InDir(brought), "/", kProgramAttemptFile),
                                     absl::StrCat(from)));
    fs::rename(InDir(brought), InDir(kTaking), error);
    RETURN_IF_ERROR(AsStatus(error, InDir(kTaking)));
  }
  if (!fs::exists(InDir(kTaking), error)) return 0;
  for (const std::string& name : NamesIn(InDir(kTaking))) {
    fs::remove_all(InDir(name), error);
    fs::rename(absl::StrCat(InDir(kTaking), "/", name), InDir(name), error);
    RETURN_IF_ERROR(AsStatus(error, InDir(name)));
  }
  fs::remove(InDir(kTaking), error);
  RETURN_IF_ERROR(AsStatus(error, InDir(kTaking)));
  return LastAttempt();
}

absl::Status TravellingFold::PutBack(const KeptCheckpoints& checkpoints) const {
  std::error_code ignored;
  if (!fs::exists(InDir(kPutBack), ignored)) return absl::OkStatus();
  RETURN_IF_ERROR(checkpoints.PutBack());
  unlink(InDir(kPutBack).c_str());
  return absl::OkStatus();
}

absl::Status TravellingFold::Pack(const KeptCheckpoints& checkpoints) {
  const std::pair<std::string, std::string> newest = {checkpoints.LastCopy(),
                                                      checkpoints.LastOfHelper()};
  if (newest == packed_) return absl::OkStatus();
  std::vector<std::string> files = {kTries};
  AddFiles(dir_, newest.first, files);
  AddFiles(dir_, newest.second, files);
  std::error_code error;
  const std::string root = fs::canonical(dir_, error).string();
  RETURN_IF_ERROR(AsStatus(error, dir_));
  ASSIGN_OR_RETURN(const auto pack, FolderPack::Open(root, files, {}));
  RETURN_IF_ERROR(pack->WriteTo(absl::StrCat(state_dir_, "/", ProgramPackPath(job_, own_))));
  packed_ = newest;
  RemoveOlderProgramPacks(state_dir_, job_, own_);
  return absl::OkStatus();
}

void TravellingFold::RemovePacks() const {
  ProgramPack later = own_;
  ++later.attempt;
  RemoveOlderProgramPacks(state_dir_, job_, later);
}

}  // namespace traind
