// TrainingCalls: deleting and pinning Jobs.
#include <absl/strings/str_cat.h>
#include <absl/synchronization/notification.h>

#include <filesystem>
#include <system_error>
#include <vector>

#include "common/base/job_layout.h"
#include "common/base/status_macros.h"
#include "server/rpc/training_calls.h"

namespace traind {
namespace {

const char* KindName(Garbage what) {
  switch (what) {
    case Garbage::kCache:
      return "cache";
    case Garbage::kInterim:
      return "interim";
    case Garbage::kHistory:
      return "history";
    case Garbage::kJob:
      return "job";
    case Garbage::kTemporary:
      return "temporary";
    case Garbage::kLog:
      return "log";
  }
  return "";
}

}  // namespace

bool TrainingCalls::FilesMissing(const Job& job) const {
  const bool had_files = !job.table.table.empty() || job.prediction.has_value();
  return IsTerminal(job.state) && had_files && FolderMissing(job.id);
}

bool TrainingCalls::FolderMissing(const std::string& id) const {
  std::error_code unknown;
  return !std::filesystem::exists(absl::StrCat(state_dir_, "/", JobDir(id)), unknown) && !unknown;
}

absl::Status TrainingCalls::CheckFilesOf(const Job& job) const {
  if (!FilesMissing(job)) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat("the files of job ", job.id,
                                                    " are gone: somebody has removed ", state_dir_,
                                                    "/", JobDir(job.id)));
}

absl::Status TrainingCalls::DeleteJob(const Caller& caller, const v1::DeleteJobRequest& request,
                                      v1::DeleteJobReply* reply) {
  const auto job = Find(request.id());
  if (!job.ok() && !absl::IsNotFound(job.status())) return job.status();
  if (job.ok()) RETURN_IF_ERROR(CheckOwner(caller, **job));
  // A Job that was deleted before is not found.
  const std::string id = job.ok() ? (*job)->id : request.id();
  const auto bytes = collector_->Delete(id);
  if (absl::IsNotFound(bytes.status())) return job.ok() ? bytes.status() : job.status();
  if (!bytes.ok()) return bytes.status();
  reply->set_id(id);
  reply->set_bytes(*bytes);
  return absl::OkStatus();
}

absl::Status TrainingCalls::PinJob(const Caller& caller, const v1::PinJobRequest& request,
                                   v1::Job* reply) {
  const auto job = Find(request.id());
  if (!job.ok()) return job.status();
  RETURN_IF_ERROR(CheckOwner(caller, **job));
  absl::Notification done;
  absl::Status status;
  loop_->Pin((*job)->id, request.pinned(), [&](const Reply& answer) {
    status = answer.status;
    done.Notify();
  });
  done.WaitForNotification();
  if (!status.ok()) return status;
  const auto pinned = Find((*job)->id);
  if (!pinned.ok()) return pinned.status();
  *reply = Describe(**pinned);
  return absl::OkStatus();
}

absl::Status TrainingCalls::CollectGarbage(const v1::CollectGarbageRequest& request,
                                           v1::CollectGarbageReply* reply) {
  const auto items = collector_->Collect(request.dry_run());
  if (!items.ok()) return items.status();
  int64_t bytes = 0;
  for (const GarbageItem& item : *items) {
    v1::GarbageItem* const to = reply->add_items();
    to->set_kind(KindName(item.what));
    to->set_name(item.name);
    to->set_bytes(item.bytes);
    to->set_why(item.why);
    bytes += item.bytes;
  }
  reply->set_bytes(bytes);
  return absl::OkStatus();
}

}  // namespace traind
