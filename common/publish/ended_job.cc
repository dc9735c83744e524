#include "common/publish/ended_job.h"

#include <absl/strings/str_cat.h>
#include <errno.h>
#include <unistd.h>

#include <filesystem>
#include <system_error>

#include "common/base/durable_file.h"
#include "common/base/job_layout.h"
#include "common/base/status_macros.h"
#include "common/publish/prediction_files.h"
#include "common/publish/prediction_manifest.h"
#include "common/publish/publish_lock.h"
#include "common/publish/publisher.h"

namespace traind {
namespace {

bool Exists(const std::string& path) { return access(path.c_str(), F_OK) == 0; }

absl::Status PointTo(const std::string& state_dir, const std::string& job, int number) {
  const auto standing = ReadStandingPrediction(state_dir, job);
  const int now = standing.ok() ? standing->number : 0;
  if (now == number) return absl::OkStatus();
  if (number == 0) {
    const std::string link = absl::StrCat(state_dir, "/", CurrentLink(job));
    if (unlink(link.c_str()) != 0) return ErrnoStatus(errno, absl::StrCat("cannot remove ", link));
    return SyncDir(absl::StrCat(state_dir, "/", JobDir(job)));
  }
  // A Prediction that was removed by hand is not pointed to.
  if (!Exists(absl::StrCat(state_dir, "/", PredictionDir(job, number)))) return absl::OkStatus();
  return SwitchCurrent(state_dir, job, number);
}

absl::Status SetQuality(const std::string& state_dir, const std::string& job, int number,
                        Quality quality) {
  absl::StatusOr<PredictionManifest> standing = ReadStandingManifest(state_dir, job);
  if (!standing.ok() || standing->prediction.number != number) return absl::OkStatus();
  if (standing->prediction.quality == quality) return absl::OkStatus();
  standing->prediction.quality = quality;
  return WriteFileDurably(
      absl::StrCat(state_dir, "/", PredictionDir(job, number), "/", kManifestFile),
      EncodeManifest(*standing));
}

// The files that a user's programs left were copied; the folders in which they worked may be large.
void RemoveWorkOfPrograms(const std::string& state_dir, const std::string& job) {
  std::error_code ignored;
  std::filesystem::remove_all(absl::StrCat(state_dir, "/", ProgramsDir(job)), ignored);
}

}  // namespace

absl::Status EndPublishing(const std::string& state_dir, const std::string& job, int number,
                           Quality quality) {
  if (!Exists(absl::StrCat(state_dir, "/", JobDir(job)))) return absl::OkStatus();
  // Before the lock is there: who holds it may be about to switch `current`, and looks once more.
  // This syncs the folder, and with it `current`, if who switched it was killed before its sync.
  RETURN_IF_ERROR(
      WriteFileDurably(absl::StrCat(state_dir, "/", EndedMark(job)), absl::StrCat(number, "\n")));
  ASSIGN_OR_RETURN(const JobPublishLock lock,
                   JobPublishLock::Acquire(state_dir, job, PublishLockTimeout()));
  RemoveWorkOfPrograms(state_dir, job);
  RETURN_IF_ERROR(PointTo(state_dir, job, number));
  return SetQuality(state_dir, job, number, quality);
}

absl::Status CheckNotEnded(const std::string& state_dir, const std::string& job) {
  if (!Exists(absl::StrCat(state_dir, "/", EndedMark(job)))) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("job ", job, " is over; its prediction stays as it is"));
}

}  // namespace traind
