#include "server/archive/tenure.h"

#include <absl/cleanup/cleanup.h>
#include <absl/strings/match.h>
#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_split.h>
#include <absl/strings/strip.h>
#include <absl/time/clock.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <filesystem>
#include <limits>
#include <system_error>
#include <utility>

#include "common/base/durable_file.h"
#include "common/base/host_name.h"
#include "common/base/job_layout.h"
#include "common/base/log.h"
#include "common/base/status_macros.h"
#include "server/archive/lease_file.h"
#include "server/objects/s3_objects.h"

namespace traind {
namespace {

namespace fs = std::filesystem;

constexpr char kMagic[] = "traind-archived-1";
constexpr absl::Duration kAfterAnError = absl::Seconds(1);
constexpr absl::Duration kTryAgain = absl::Milliseconds(100);
// Of a log, between two renewals of the lease, which must not wait for it.
constexpr int64_t kMostLogBytes = 1 << 20;

std::string Database(const std::string& dir) { return absl::StrCat(dir, "/", kDatabaseFile); }
std::string MarkerPath(const std::string& dir) { return absl::StrCat(Database(dir), "-archived"); }

// Renames a file if it is there.
absl::Status MoveAway(const std::string& from, const std::string& to) {
  if (rename(from.c_str(), to.c_str()) == 0 || errno == ENOENT) return absl::OkStatus();
  return ErrnoStatus(errno, absl::StrCat("cannot move ", from));
}

}  // namespace

absl::Status LinkFolders(const std::string& state_dir, const std::string& artifacts) {
  for (const std::string& name : {std::string("jobs"), CacheDir(), std::string(kUploadsDir)}) {
    const std::string here = absl::StrCat(state_dir, "/", name);
    const std::string there = absl::StrCat(artifacts, "/", name);
    RETURN_IF_ERROR(MakeDirs(there));
    std::error_code error;
    if (fs::is_symlink(here, error)) {
      if (fs::equivalent(here, there, error)) continue;
      return absl::FailedPreconditionError(
          absl::StrCat(here, " is a link that goes with other --artifacts, and not to ", there,
                       "; if the files have moved there, remove it"));
    }
    rmdir(here.c_str());  // where it is empty
    if (symlink(there.c_str(), here.c_str()) != 0) {
      if (errno != EEXIST) return ErrnoStatus(errno, absl::StrCat("cannot make the link ", here));
      return absl::FailedPreconditionError(absl::StrCat(
          here, " has files, which belong to ", there, " with --artifacts; move them there first"));
    }
  }
  return SyncDir(state_dir);
}

absl::StatusOr<std::unique_ptr<Tenure>> Tenure::Begin(TenureOptions options, const Clock* clock) {
  ASSIGN_OR_RETURN(const auto objects, OpenObjects(options.artifacts, ObjectUse::kOwn));
  ASSIGN_OR_RETURN(Archive archive, Archive::Create(objects));
  std::unique_ptr<Tenure> tenure(new Tenure(std::move(options), clock, std::move(archive)));
  RETURN_IF_ERROR(tenure->ReadMarker());
  const std::string& state_dir = tenure->options_.state_dir;
  if (objects->is_folder()) {
    RETURN_IF_ERROR(LinkFolders(state_dir, tenure->options_.artifacts));
  } else {
    // The lease must not wait for what a slow link takes.
    tenure->mirror_ = std::make_unique<FileMirror>(objects, state_dir, clock, [raw = tenure.get()] {
      raw->GiveFiles();
      raw->GiveLogs(kMostLogBytes);
    });
    if (tenure->options_.standby) tenure->mirror_->Follow();
  }
  RETURN_IF_ERROR(tenure->Wait());
  tenure->renews_ = std::thread([raw = tenure.get()] { raw->Run(); });
  if (tenure->mirror_ != nullptr) RETURN_IF_ERROR(tenure->mirror_->TakeOver(!tenure->copied_));
  return tenure;
}

Tenure::Tenure(TenureOptions options, const Clock* clock, Archive archive)
    : options_(std::move(options)),
      clock_(clock),
      archive_(std::move(archive)),
      host_(HostName()),
      given_(options_.files.size()) {}

Tenure::~Tenure() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  changed_.NotifyAll();
  if (renews_.joinable()) renews_.join();
  mirror_.reset();  // its thread uses the rest
}

// ---- what the state folder knows ----------------------------------------------

absl::Status Tenure::ReadMarker() {
  const std::string path = MarkerPath(options_.state_dir);
  const auto text = ReadFile(path);
  if (text.ok()) {
    const std::vector<std::string> words =
        absl::StrSplit(absl::StripTrailingAsciiWhitespace(*text), ' ');
    if (words.size() != 4 || words[0] != kMagic || !absl::SimpleAtoi(words[3], &marked_epoch_)) {
      return absl::DataLossError(absl::StrCat(path, " is damaged"));
    }
    marked_archive_ = words[1];
    name_ = words[2];
  } else if (absl::IsNotFound(text.status())) {
    name_ = RandomName();
  } else {
    return text.status();
  }
  // A copy of the folder on another machine is another holder.
  holder_ = Sha256Hex(absl::StrCat(name_, " ", host_)).substr(0, 16);
  watch_ = std::make_unique<LeaseWatch>(holder_, options_.times.ttl);
  return absl::OkStatus();
}

absl::Status Tenure::WriteMarker() const {
  return WriteFileDurably(
      MarkerPath(options_.state_dir),
      absl::StrCat(kMagic, " ", archive_.id(), " ", name_, " ", begun_.epoch, "\n"));
}

bool Tenure::IsCurrent(const ArchivePosition& end) const {
  std::error_code error;
  // Nobody has used the archive: it begins with the database that is here, or with none.
  if (end.epoch == 0) return true;
  return marked_archive_ == archive_.id() && marked_epoch_ == end.epoch &&
         fs::exists(Database(options_.state_dir), error);
}

// ---- taking it ------------------------------------------------------------------

absl::Status Tenure::Wait() {
  while (true) {
    const absl::StatusOr<bool> ours = Look();
    // A folder that another machine lends may be away for a while.
    const bool fatal = !ours.ok() && (!options_.standby || absl::IsDataLoss(ours.status()) ||
                                      absl::IsFailedPrecondition(ours.status()));
    if (fatal) return ours.status();
    if (ours.ok() && *ours) return absl::OkStatus();
    if (!ours.ok()) TRAIND_LOG(WARNING) << "the archive cannot be read: " << ours.status();
    if (options_.stop()) return absl::CancelledError("told to stop");
    absl::SleepFor(ours.ok() ? archive_.objects().look_every() : kAfterAnError);
  }
}

absl::StatusOr<bool> Tenure::Look() {
  if (follower_ == nullptr) {
    ASSIGN_OR_RETURN(end_, end_.number == 0 ? archive_.FindEnd() : archive_.FindEnd(end_));
    std::error_code error;
    if (!IsCurrent(end_)) {
      if (marked_archive_ != archive_.id() && fs::exists(Database(options_.state_dir), error)) {
        return absl::FailedPreconditionError(absl::StrCat(
            Database(options_.state_dir), " is not the database of which ", options_.artifacts,
            " has an archive; move it away, or give another folder with --artifacts"));
      }
      follower_ = std::make_unique<Follower>(
          &archive_, absl::StrCat(Database(options_.state_dir), kTemporaryMark, "following"));
    }
  }
  if (follower_ != nullptr) {
    RETURN_IF_ERROR(follower_->CatchUp());
    end_ = follower_->at();
  }
  ASSIGN_OR_RETURN(const auto lease, ReadLease(archive_.objects(), end_.epoch));
  const absl::Duration now = clock_->MonotonicNow();
  watch_->Saw(end_.epoch, lease, now);
  if (watch_->MayTakeOver(now)) {
    const absl::Status claimed = Claim(end_);
    // Whoever was first may have ended since: the next look tells.
    if (absl::IsAlreadyExists(claimed)) return false;
    RETURN_IF_ERROR(claimed);
    return true;
  }
  const std::string host = lease ? lease->host : "another host";
  if (!options_.standby) {
    return absl::AbortedError(absl::StrCat("another traind, on ", host, ", has the archive ",
                                           options_.artifacts,
                                           "; --standby waits until it has ended"));
  }
  if (!std::exchange(told_, true)) options_.waits(host);
  return false;
}

absl::Status Tenure::Claim(ArchivePosition end) {
  const std::string database = Database(options_.state_dir);
  ArchiveEntry entry;
  entry.number = end.number + 1;
  entry.epoch = end.epoch + 1;
  entry.holder = holder_;
  entry.before = end.digest;
  entry.begins = true;
  entry.has_base = follower_ == nullptr && access(database.c_str(), F_OK) == 0;
  const EncodedEntry encoded = Encode(entry);
  if (entry.has_base) {
    RETURN_IF_ERROR(options_.fold(database));
    const int fd = open(database.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) return ErrnoStatus(errno, absl::StrCat("cannot open ", database));
    const absl::Cleanup closer = [fd] { close(fd); };
    const std::atomic<bool> never{false};
    RETURN_IF_ERROR(archive_.AddBase(fd, entry.number, encoded.digest, never));
  }
  const absl::Duration begun = clock_->MonotonicNow();
  if (const absl::Status added = archive_.Add(entry, encoded); !added.ok()) {
    if (entry.has_base && absl::IsAlreadyExists(added)) {
      archive_.RemoveBase(entry.number, encoded.digest);
    }
    return added;
  }
  begun_ = {entry.number, entry.epoch, encoded.digest};
  RETURN_IF_ERROR(WriteLease(archive_.objects(), Note()));
  {
    absl::MutexLock lock(&mutex_);
    lease_ = std::make_unique<LeaseTenure>(options_.times, begun);
  }
  if (follower_ != nullptr) RETURN_IF_ERROR(ReplaceDatabase());
  RETURN_IF_ERROR(WriteMarker());
  RemoveLeasesBefore(archive_.objects(), begun_.epoch);
  TRAIND_LOG(INFO) << "epoch " << begun_.epoch << " of the archive " << options_.artifacts
                   << " begins after change " << end.number
                   << (copied_ ? ", with the database from there" : "");
  return absl::OkStatus();
}

absl::Status Tenure::ReplaceDatabase() {
  const std::string database = Database(options_.state_dir);
  const std::string old = absl::StrCat(database, "-superseded");
  // Its own log goes with it: that of one database must never meet another.
  RETURN_IF_ERROR(MoveAway(database, old));
  RETURN_IF_ERROR(MoveAway(absl::StrCat(database, "-wal"), absl::StrCat(old, "-wal")));
  for (const char* const rest : {"-shm", "-mark"}) unlink(absl::StrCat(database, rest).c_str());
  RETURN_IF_ERROR(SyncDir(options_.state_dir));
  RETURN_IF_ERROR(TakeFiles());
  RETURN_IF_ERROR(TakeLogs());
  RETURN_IF_ERROR(follower_->Finish(database));
  follower_.reset();
  copied_ = true;
  return absl::OkStatus();
}

// ---- files besides the database -----------------------------------------------

absl::Status Tenure::TakeFiles() const {
  for (const std::string& name : options_.files) {
    const auto content = archive_.objects().Read(Archive::FileKey(name));
    if (absl::IsNotFound(content.status())) continue;
    RETURN_IF_ERROR(content.status());
    RETURN_IF_ERROR(WriteFileDurably(absl::StrCat(options_.state_dir, "/", name), *content));
  }
  return absl::OkStatus();
}

// Lines that this folder alone has are kept under another name.
absl::Status Tenure::TakeLogs() const {
  for (const LogNames& names : options_.logs) {
    for (const std::string& name : {names.older, names.name}) {
      const auto content = archive_.objects().Read(Archive::FileKey(name));
      if (absl::IsNotFound(content.status())) continue;
      RETURN_IF_ERROR(content.status());
      const std::string path = absl::StrCat(options_.state_dir, "/", name);
      const auto own = ReadFile(path);
      if (own.ok() && !absl::StartsWith(*content, *own)) {
        RETURN_IF_ERROR(MoveAway(path, absl::StrCat(path, "-superseded")));
      }
      RETURN_IF_ERROR(WriteFileDurably(path, *content));
    }
  }
  return absl::OkStatus();
}

absl::Status Tenure::TryToGiveLogs(int64_t most_bytes) {
  if (mirror_ != nullptr) {
    if (log_objects_.empty()) {
      for (const LogNames& names : options_.logs) {
        log_objects_.push_back(
            std::make_unique<LogObject>(&archive_.objects(), options_.state_dir, names));
      }
    }
    const bool all = most_bytes == std::numeric_limits<int64_t>::max();
    for (const auto& log : log_objects_) {
      RETURN_IF_ERROR(log->CatchUp(clock_->MonotonicNow(), all));
    }
    return absl::OkStatus();
  }
  const std::string folder(absl::StripSuffix(archive_.objects().NameOf(Archive::FileKey("")), "/"));
  RETURN_IF_ERROR(MakeDirs(folder));
  if (log_copies_.empty()) {
    for (const LogNames& names : options_.logs) {
      log_copies_.push_back(std::make_unique<LogCopy>(options_.state_dir, folder, names));
    }
  }
  for (const auto& copy : log_copies_) RETURN_IF_ERROR(copy->CatchUp(most_bytes));
  return absl::OkStatus();
}

void Tenure::GiveLogs(int64_t most_bytes) {
  const absl::Status given = TryToGiveLogs(most_bytes);
  if (!given.ok() && !logs_fail_) TRAIND_LOG(WARNING) << "a standby gets no new log: " << given;
  logs_fail_ = !given.ok();
}

void Tenure::GiveFiles() {
  for (size_t i = 0; i < options_.files.size(); ++i) {
    const std::string& name = options_.files[i];
    struct stat about = {};
    if (stat(absl::StrCat(options_.state_dir, "/", name).c_str(), &about) != 0) continue;
    const std::string stamp = absl::StrCat(about.st_size, " ", about.st_mtim.tv_sec, " ",
                                           about.st_mtim.tv_nsec, " ", about.st_ino);
    if (stamp == given_[i]) continue;
    const auto content = ReadFile(absl::StrCat(options_.state_dir, "/", name));
    if (!content.ok()) continue;
    const absl::Status given = archive_.objects().Write(Archive::FileKey(name), *content);
    if (!given.ok()) {
      TRAIND_LOG(WARNING) << "a standby does not get the new " << name << ": " << given;
      continue;
    }
    given_[i] = stamp;
  }
}

// ---- keeping it -----------------------------------------------------------------

LeaseNote Tenure::Note() const {
  LeaseNote note;
  note.epoch = begun_.epoch;
  note.beat = beat_;
  note.holder = holder_;
  note.host = host_;
  note.ttl = options_.times.ttl;
  return note;
}

void Tenure::Run() {
  const auto stopping = [this] {
    mutex_.AssertReaderHeld();
    return stopping_;
  };
  const auto give = [this] {
    if (mirror_ != nullptr) return;  // it does so
    GiveFiles();
    GiveLogs(kMostLogBytes);
  };
  give();
  while (true) {
    const absl::Duration begun = clock_->MonotonicNow();
    bool renew = false;
    {
      absl::MutexLock lock(&mutex_);
      const LeaseTenure::Act act = lease_->Next(begun);
      if (stopping_ || act == LeaseTenure::Act::kFence) return;
      renew = act == LeaseTenure::Act::kRenew;
      if (!renew) {
        changed_.Await(mutex_, lease_->WakeAt() - begun, stopping);
        continue;
      }
    }
    ++beat_;
    const absl::Status written = WriteLease(archive_.objects(), Note());
    if (written.ok()) {
      {
        absl::MutexLock lock(&mutex_);
        lease_->Renewed(begun);
      }
      give();
    } else {
      TRAIND_LOG(WARNING) << "the lease was not renewed: " << written;
      absl::MutexLock lock(&mutex_);
      changed_.Await(mutex_, kTryAgain, stopping);
    }
  }
}

absl::Status Tenure::Check() const {
  absl::MutexLock lock(&mutex_);
  if (lease_->Next(clock_->MonotonicNow()) != LeaseTenure::Act::kFence) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "the lease in ", options_.artifacts, " was not renewed for ",
      absl::FormatDuration(options_.times.FenceAfter()), ", so another traind may take over"));
}

void Tenure::Release() {
  // While the lease is still renewed: that may take a while.
  if (mirror_ != nullptr) {
    if (const absl::Status given = mirror_->Finish(); !given.ok()) {
      TRAIND_LOG(WARNING) << "the bucket lacks files of this state folder: " << given;
    }
  }
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  changed_.NotifyAll();
  if (renews_.joinable()) renews_.join();
  GiveFiles();
  GiveLogs(std::numeric_limits<int64_t>::max());
  LeaseNote note = Note();
  ++note.beat;
  note.released = true;
  if (const absl::Status written = WriteLease(archive_.objects(), note); !written.ok()) {
    TRAIND_LOG(WARNING) << "another traind takes over later than it could: " << written;
  }
}

}  // namespace traind
