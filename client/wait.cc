#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "client/exit_codes.h"
#include "client/job_array.h"
#include "client/job_follower.h"
#include "client/render_table.h"
#include "client/verbs.h"
#include "common/base/duration.h"
#include "common/spec/field_text.h"
#include "common/wire/render_json.h"

namespace traind {
namespace {

// traind serves 64 streams of a connection. Further Jobs are followed once earlier ones have ended.
constexpr size_t kMostStreams = 32;
constexpr absl::Duration kLeastTick = absl::Milliseconds(1);

// Prints once that the connection is lost, although each followed Job loses it.
class NotesOnce final : public FollowView {
 public:
  explicit NotesOnce(std::ostream& err) : err_(err) {}
  void OnJob(const v1::Job&) override {}
  void OnTick() override {}
  void Note(const std::string& line) override { err_ << line << std::endl; }
  void OnLost(const absl::Status& status) override {
    if (!lost_) FollowView::OnLost(status);
    lost_ = true;
  }
  void OnConnectedAgain() override {
    if (lost_) FollowView::OnConnectedAgain();
    lost_ = false;
  }
  void Close() override {}

 private:
  std::ostream& err_;
  bool lost_ = false;
};

// The Jobs that one call of `wait` waits for.
// Threads: confined to one.
class AwaitedJobs {
 public:
  AwaitedJobs(const Arguments& arguments, Environment& environment)
      : arguments_(arguments),
        environment_(environment),
        until_(Now() + arguments.timeout.value_or(absl::InfiniteDuration())),
        client_(MakeClient(arguments, environment)),
        notes_(environment.err) {}

  // Looks up each Job of the command line. Errors: those of FindJobToFollow; InvalidArgument: too
  // many Jobs for --any.
  absl::Status Find();
  // Returns when the wait is over, or its time. Errors: those of JobFollower.
  absl::Status Follow();
  // Prints the JSON document or the Jobs that go on; returns the exit code.
  int Finish();

 private:
  absl::Duration Now() const { return environment_.clock.MonotonicNow(); }
  bool Done() const { return live_.empty() || (arguments_.any && ended_.jobs_size() > 0); }
  void MoveEnded();
  void Print(const v1::Job& job);
  int EndsExitCode() const;

  const Arguments& arguments_;
  Environment& environment_;
  const absl::Duration until_;  // on the monotonic clock
  TrainingClient client_;
  NotesOnce notes_;
  std::vector<std::unique_ptr<JobFollower>> live_;  // in the order of the command line
  v1::ListJobsReply ended_;                         // in the order of their ends
};

absl::Status AwaitedJobs::Find() {
  std::vector<std::string> names = arguments_.jobs;
  if (!arguments_.array.empty()) {
    const auto jobs = JobsOfArray(client_, arguments_.array);
    if (!jobs.ok()) return jobs.status();
    for (const v1::Job& job : *jobs) names.push_back(job.id());
  }
  for (const std::string& name : names) {
    std::optional<absl::Duration> left;
    if (arguments_.timeout) left = until_ - Now();
    auto job = FindJobToFollow(client_, name, left, environment_);
    if (!job.ok()) return job.status();
    const bool known = std::any_of(live_.begin(), live_.end(), [&](const auto& follower) {
      return follower->job().id() == job->id();
    });
    if (known) continue;
    live_.push_back(std::make_unique<JobFollower>(client_, *std::move(job), until_,
                                                  environment_.clock, notes_));
  }
  MoveEnded();
  if (Done() || !arguments_.any || live_.size() <= kMostStreams) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("--any takes at most ", kMostStreams, " Jobs, not ", live_.size()));
}

absl::Status AwaitedJobs::Follow() {
  while (!Done() && Now() < until_) {
    const size_t streams = std::min(live_.size(), kMostStreams);
    const absl::Duration tick = std::max(kFollowTick / static_cast<int64_t>(streams), kLeastTick);
    for (size_t i = 0; i < streams && Now() < until_; ++i) {
      if (absl::Status status = live_[i]->Step(tick); !status.ok()) return status;
    }
    MoveEnded();
  }
  return absl::OkStatus();
}

void AwaitedJobs::MoveEnded() {
  const auto goes_on = [](const auto& follower) { return !HasEnded(follower->job()); };
  const auto first = std::stable_partition(live_.begin(), live_.end(), goes_on);
  for (auto it = first; it != live_.end(); ++it) {
    Print((*it)->job());
    *ended_.add_jobs() = (*it)->job();
  }
  live_.erase(first, live_.end());
}

void AwaitedJobs::Print(const v1::Job& job) {
  if (!arguments_.json) {
    environment_.out << JobLine(job, UsesColor(arguments_, environment_)) << std::endl;
  } else if (arguments_.output == OutputFormat::kJsonLines) {
    environment_.out << ToJsonLine(job) << std::endl;
  }
}

int AwaitedJobs::EndsExitCode() const {
  int exit_code = kExitOk;
  for (const v1::Job& job : ended_.jobs()) {
    const int of_job = ExitCodeOfEnd(job);
    if (exit_code == kExitOk || of_job == kExitError) exit_code = of_job;
  }
  return exit_code;
}

int AwaitedJobs::Finish() {
  if (arguments_.json && arguments_.output != OutputFormat::kJsonLines) {
    environment_.out << "{\n\"jobs\": " << ToJsonArray(ended_, "jobs") << "\n}\n";
  }
  if (Done()) return EndsExitCode();
  const auto state_of = [](std::string* out, const std::unique_ptr<JobFollower>& follower) {
    absl::StrAppend(out, Printable(follower->job().id()), " ",
                    StateText(follower->job().state(), false));
  };
  environment_.err << "trainctl: after " << DurationToText(*arguments_.timeout)
                   << " these go on: " << absl::StrJoin(live_, ", ", state_of) << "\n";
  return kExitTimeout;
}

}  // namespace

int RunWait(const Arguments& arguments, Environment& environment) {
  environment.hold_interrupts(false, "trainctl waits no longer; the Jobs go on\n");
  AwaitedJobs jobs(arguments, environment);
  absl::Status status = jobs.Find();
  if (status.ok()) status = jobs.Follow();
  environment.hold_interrupts(false, "");
  return status.ok() ? jobs.Finish() : ReportError(environment, status);
}

}  // namespace traind
