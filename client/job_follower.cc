#include "client/job_follower.h"

#include <absl/strings/str_cat.h>
#include <absl/time/clock.h>

#include <algorithm>

#include "common/base/duration.h"
#include "common/spec/field_text.h"

namespace traind {
namespace {

// After so long a silence, trainctl asks whether the stream still works.
constexpr absl::Duration kSilence = absl::Seconds(15);
constexpr absl::Duration kAskLimit = absl::Seconds(5);
constexpr absl::Duration kFirstContact = absl::Minutes(5);

}  // namespace

bool HasEnded(const v1::Job& job) {
  return job.state() == v1::JOB_STATE_SUCCEEDED || job.state() == v1::JOB_STATE_FAILED ||
         job.state() == v1::JOB_STATE_CANCELLED;
}

ExitCode ExitCodeOfEnd(const v1::Job& job) {
  return job.state() == v1::JOB_STATE_SUCCEEDED ? kExitOk
         : job.state() == v1::JOB_STATE_FAILED  ? kExitError
                                                : kExitCancelled;
}

void FollowView::OnLost(const absl::Status& status) {
  Note(absl::StrCat("lost traind (", Printable(status.message(), 200),
                    "); the Job goes on, and trainctl waits for traind to come back"));
}

absl::Status JobFollower::Step(absl::Duration tick) {
  tick = std::min(tick, until_ - Now());
  if (watch_ == nullptr) {
    if (Now() < next_try_) {
      absl::SleepFor(std::min(tick, next_try_ - Now()));
      return absl::OkStatus();
    }
    watch_ = client_.WatchJob(job_.id(), job_.version());
    heard_ = Now();
  }
  v1::Job job;
  switch (watch_->Next(tick, job)) {
    case JobWatch::Event::kJob:
      Take(std::move(job));
      return absl::OkStatus();
    case JobWatch::Event::kEnded:
      return Lose(watch_->status());
    case JobWatch::Event::kNothing:
      if (Now() - heard_ < kSilence) return absl::OkStatus();
      break;
  }
  auto asked = client_.GetJobOnce(job_.id(), std::min(kAskLimit, until_ - Now()));
  if (!asked.ok()) return Lose(asked.status());
  Take(*std::move(asked));
  return absl::OkStatus();
}

void JobFollower::Take(v1::Job job) {
  heard_ = Now();
  backoff_.Reset();
  if (lost_) view_.OnConnectedAgain();
  lost_ = false;
  job_ = std::move(job);
  view_.OnJob(job_);
}

// The status is passed by value because it may belong to the watch, which is destroyed here.
absl::Status JobFollower::Lose(absl::Status status) {
  watch_.reset();
  if (!status.ok() && !IsConnectionLoss(status)) return status;
  if (!lost_ && !status.ok()) {
    view_.OnLost(status);
    lost_ = true;
  }
  next_try_ = Now() + backoff_.Next();
  return absl::OkStatus();
}

absl::StatusOr<v1::Job> FindJobToFollow(TrainingClient& client, const std::string& id_or_name,
                                        std::optional<absl::Duration> timeout,
                                        Environment& environment) {
  const absl::Duration limit = timeout.value_or(kFirstContact);
  const absl::Duration until = environment.clock.MonotonicNow() + limit;
  const auto left = [&] { return until - environment.clock.MonotonicNow(); };
  const auto ask = [&] { return client.GetJobOnce(id_or_name, std::min(kAskLimit, left())); };
  const auto first = ask();
  if (first.ok() || !IsConnectionLoss(first.status())) return first;
  environment.err << Printable(first.status().message(), 400) << "; trainctl waits up to "
                  << DurationToText(limit) << " for it (--timeout)" << std::endl;
  Backoff backoff;
  while (left() > absl::ZeroDuration()) {
    absl::SleepFor(std::min(backoff.Next(), left()));
    auto job = ask();
    if (job.ok() || !IsConnectionLoss(job.status())) return job;
  }
  return first.status();
}

}  // namespace traind
