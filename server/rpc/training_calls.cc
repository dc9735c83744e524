#include "server/rpc/training_calls.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>
#include <absl/synchronization/notification.h>
#include <google/protobuf/util/time_util.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "common/base/clock.h"
#include "common/base/duration.h"
#include "common/base/status_macros.h"
#include "common/spec/spec_rules.h"
#include "common/transfer/folder_pack.h"
#include "server/domain/names.h"
#include "server/plan/planner.h"
#include "server/plan/quota_use.h"
#include "server/plan/speed_guess.h"
#include "server/rpc/artifact_reader.h"
#include "server/rpc/job_conversion.h"
#include "server/rpc/trial_settings.h"
#include "server/rpc/worker_gateway.h"

namespace traind {
namespace {

using google::protobuf::util::TimeUtil;

constexpr int kDefaultPage = 100;
constexpr int kMaxPage = 1000;
constexpr int kRecordPage = 1000;  // metrics or events
constexpr absl::Duration kWatchEvery = absl::Milliseconds(100);
// How long a stream sleeps at most before it looks whether its client is gone.
constexpr absl::Duration kLookAround = absl::Milliseconds(500);

}  // namespace

v1::Job TrainingCalls::Describe(const Job& job, bool brief) const {
  v1::Job described = ToProto(job, {state_dir_, loop_->Now(), brief});
  described.set_files_missing(FilesMissing(job));
  return described;
}

absl::StatusOr<std::shared_ptr<const Job>> TrainingCalls::Find(
    const std::string& id_or_name) const {
  if (id_or_name.empty()) return absl::InvalidArgumentError("id: which job?");
  if (auto view = loop_->views().Find(id_or_name); view.job != nullptr) return view.job;
  absl::StatusOr<Job> stored = store_->GetJob(id_or_name);
  if (stored.ok()) return std::make_shared<const Job>(*std::move(stored));
  if (!absl::IsNotFound(stored.status())) return stored.status();
  ASSIGN_OR_RETURN(const std::vector<std::string> named, store_->FindByName(id_or_name));
  if (named.empty()) {
    if (const auto deleted = store_->FindDeleted(id_or_name); deleted.ok()) {
      return absl::NotFoundError(
          absl::StrCat("job ", id_or_name, " was deleted at ", TimestampToText(*deleted)));
    }
    return absl::NotFoundError(absl::StrCat("there is no job '", id_or_name, "'"));
  }
  return named.size() == 1 ? Find(named[0]) : SeveralCalled(id_or_name, named);
}

absl::Status TrainingCalls::SeveralCalled(absl::string_view name,
                                          const std::vector<std::string>& ids) const {
  std::string text = absl::StrCat("several jobs are called '", name, "'; name one by its id:");
  for (const std::string& id : ids) {
    const auto job = Find(id);
    if (!job.ok()) continue;  // it was deleted just now
    absl::StrAppend(&text, "\n  ", id, "  ", Name((*job)->state), ", accepted ",
                    TimestampToText((*job)->accepted_at));
  }
  if (ids.size() == kMostNamed) absl::StrAppend(&text, "\n  and perhaps older ones");
  return absl::FailedPreconditionError(text);
}

ControlLoop::Answer TrainingCalls::JobAnswer(v1::Job* reply, Done done) const {
  return [this, reply, done = std::move(done)](const Reply& answer) {
    if (answer.status.ok() && answer.job != nullptr) *reply = Describe(*answer.job);
    done(answer.status);
  };
}

absl::Status TrainingCalls::CheckOwner(const Caller& caller, const Job& job) {
  if (caller.MayChange(job.owner)) return absl::OkStatus();
  return absl::PermissionDeniedError(absl::StrCat("job ", job.id, " belongs to ", job.owner,
                                                  "; only its owner or an admin may change it, and "
                                                  "this token is ",
                                                  caller.name, "'s"));
}

absl::StatusOr<std::string> TrainingCalls::FindLive(const Caller& caller,
                                                    const std::string& id_or_name) const {
  ASSIGN_OR_RETURN(const auto job, Find(id_or_name));
  RETURN_IF_ERROR(CheckOwner(caller, *job));
  if (!IsTerminal(job->state)) return job->id;
  return absl::FailedPreconditionError(absl::StrCat("job ", job->id, " is ", Name(job->state),
                                                    " already; what is over does not change"));
}

void TrainingCalls::Change(const Caller& caller, const std::string& id, v1::Job* reply,
                           LoopCall call, Done done) {
  const auto job = FindLive(caller, id);
  if (!job.ok()) {
    done(job.status());
  } else {
    (loop_->*call)(*job, JobAnswer(reply, std::move(done)));
  }
}

void TrainingCalls::End(const Caller& caller, const std::string& id, v1::Job* reply, LoopCall call,
                        bool Job::*asked, Done done) {
  Change(caller, id, reply, call,
         [this, id, reply, asked, done = std::move(done)](const absl::Status& answer) {
           // The answer to an earlier call may have been lost; the Job may have ended by it.
           if (absl::IsFailedPrecondition(answer)) {
             const auto job = Find(id);
             if (job.ok() && IsTerminal((*job)->state) && (**job).*asked) {
               *reply = Describe(**job);
               return done(absl::OkStatus());
             }
           }
           done(answer);
         });
}

void TrainingCalls::FinishJob(const Caller& caller, const v1::FinishJobRequest& request,
                              v1::Job* reply, Done done) {
  End(caller, request.id(), reply, &ControlLoop::Finish, &Job::finish_requested, std::move(done));
}

void TrainingCalls::CancelJob(const Caller& caller, const v1::CancelJobRequest& request,
                              v1::Job* reply, Done done) {
  End(caller, request.id(), reply, &ControlLoop::Cancel, &Job::cancel_requested, std::move(done));
}

void TrainingCalls::PauseJob(const Caller& caller, const v1::PauseJobRequest& request,
                             v1::Job* reply, Done done) {
  Change(caller, request.id(), reply, &ControlLoop::Pause, std::move(done));
}

void TrainingCalls::ResumeJob(const Caller& caller, const v1::ResumeJobRequest& request,
                              v1::Job* reply, Done done) {
  Change(caller, request.id(), reply, &ControlLoop::Resume, std::move(done));
}

absl::StatusOr<Update> TrainingCalls::CheckUpdate(const Caller& caller,
                                                  const v1::UpdateJobRequest& request) const {
  Update update;
  ASSIGN_OR_RETURN(update.job, FindLive(caller, request.id()));
  ASSIGN_OR_RETURN(const auto job, Find(update.job));
  ASSIGN_OR_RETURN(v1::JobSpec spec, SpecFromJson(job->spec_json));
  spec.clear_labels();
  for (const auto& [key, value] : job->spec.labels) (*spec.mutable_labels())[key] = value;
  for (const std::string& key : request.remove_labels()) spec.mutable_labels()->erase(key);
  for (const auto& [key, value] : request.set_labels()) (*spec.mutable_labels())[key] = value;
  if (request.has_priority()) spec.set_priority(request.priority());
  if (request.has_budget()) *spec.mutable_budget()->mutable_time() = request.budget();
  if (request.has_deadline()) *spec.mutable_budget()->mutable_deadline() = request.deadline();
  // Taken over from the Job whose models it uses.
  if (UsesModelsOfAnother(spec)) spec.mutable_predictions()->clear_ensemble();
  std::vector<std::string> wrong;
  for (const SpecError& error : CheckSpec(spec)) {
    wrong.push_back(absl::StrCat(error.field_path, ": ", error.message));
  }
  if (!wrong.empty()) return absl::InvalidArgumentError(absl::StrJoin(wrong, "\n"));
  if (request.has_budget()) {
    update.budget = absl::Milliseconds(TimeUtil::DurationToMilliseconds(request.budget()));
  }
  if (request.has_deadline()) {
    update.deadline = absl::FromUnixMillis(TimeUtil::TimestampToMilliseconds(request.deadline()));
  }
  if (request.has_priority()) update.priority = request.priority();
  update.set_labels.insert(request.set_labels().begin(), request.set_labels().end());
  update.remove_labels.assign(request.remove_labels().begin(), request.remove_labels().end());
  return update;
}

void TrainingCalls::UpdateJob(const Caller& caller, const v1::UpdateJobRequest& request,
                              v1::Job* reply, Done done) {
  auto update = CheckUpdate(caller, request);
  if (!update.ok()) {
    done(update.status());
  } else {
    loop_->Update(*std::move(update), JobAnswer(reply, std::move(done)));
  }
}

absl::Status TrainingCalls::Plan(const Caller& caller, const v1::PlanRequest& request,
                                 v1::PlanReply* reply) {
  const absl::Time now = loop_->Now();
  const auto owner = OwnerOf(caller, request.owner());
  if (!owner.ok()) return owner.status();
  auto spec = WithSource(request.spec());
  if (spec.ok()) spec = WithAfter(*std::move(spec));
  if (!spec.ok()) return spec.status();
  RETURN_IF_ERROR(AwaitedBy(*spec).status());
  RETURN_IF_ERROR(intake_->CheckOwner(*spec, *owner));
  const auto checked = intake_->Check(*spec, now);
  if (!checked.ok()) return checked.status();
  if (ProgramTrains(checked->spec)) {
    return absl::FailedPreconditionError(
        "how long a program takes is known only once it has run; the spec itself is good");
  }
  Assumptions assumptions;
  const auto recorded =
      store_->RecordedSpeed(checked->spec.speed_key, "", checked->spec.train_bytes);
  if (recorded.ok()) {
    assumptions.measured = *recorded;
    reply->set_basis("the speed recorded of an earlier job with this model on data of this size");
  } else {
    assumptions.measured = GuessSpeed(checked->work);
    reply->set_basis(
        "a guess from the size of the data and of the model; no job with this model and of this "
        "size "
        "was measured yet");
  }
  int slots = 0;
  for (const v1::WorkerInfo& worker : workers_->Workers()) {
    if (worker.connected()) slots += worker.slots_size();
  }
  assumptions.gangs = std::max(1, slots / std::max(1, checked->spec.slots));
  assumptions.prepare_s = absl::ToDoubleSeconds(checked->floor_time);
  const Preview preview = PreviewPlan(checked->spec, assumptions, now);
  *reply->mutable_resolved() = checked->resolved;
  *reply->mutable_plan() = ToProto(preview.plan);
  for (const Decision& cut : preview.cuts) *reply->add_cuts() = ToProto(cut);
  *reply->mutable_estimate_p50() = ToProto(preview.estimate_p50);
  *reply->mutable_estimate_p90() = ToProto(preview.estimate_p90);
  *reply->mutable_estimated_finish() = ToProto(preview.estimated_finish);
  reply->set_device_s_p50(preview.device_s_p50);
  reply->set_device_s_p90(preview.device_s_p90);
  *reply->mutable_full_budget() = ToProto(absl::Ceil(preview.full_budget, absl::Seconds(1)));
  *reply->mutable_earliest_deadline() = ToProto(now + checked->floor_time);
  AddQuotas(*owner, checked->spec, reply);
  for (const std::string& warning : checked->warnings) reply->add_warnings(warning);
  for (const std::string& field : checked->preset_fields) reply->add_preset_fields(field);
  reply->set_train_bytes(checked->spec.train_bytes + checked->train_media.bytes);
  return absl::OkStatus();
}

// Returns what is left of the quotas that the Job would pay from.
void TrainingCalls::AddQuotas(const std::string& owner, const Spec& spec,
                              v1::PlanReply* reply) const {
  absl::Notification answered;
  std::vector<QuotaState> quotas;
  loop_->ListQuotas([&](const Reply& answer) {
    quotas = answer.quotas;
    answered.Notify();
  });
  answered.WaitForNotification();  // the loop answers every call, also when it ends
  for (const QuotaState& state : quotas) {
    if (!state.quota.subject.Covers(owner, spec.labels)) continue;
    reply->add_quotas(absl::StrCat(traind::Text(state.quota.subject), ": ",
                                   traind::Text(absl::Seconds(state.left_s)), " left of ",
                                   traind::Text(state.quota)));
  }
}

absl::Status TrainingCalls::GetJob(const v1::GetJobRequest& request, v1::Job* reply) {
  // Read before the Job is: what is kept under a stamp is never older than it.
  const auto stamp = store_->StampOf(request.id());
  if (stamp.ok() && !FolderMissing(request.id()) && memo_.Find(request.id(), *stamp, reply)) {
    return absl::OkStatus();
  }
  const auto job = Find(request.id());
  if (!job.ok()) return job.status();
  ASSIGN_OR_RETURN(*reply, DescribeWhole(**job));
  // A Job as the loop shows it may be a moment behind the store.
  const bool current =
      stamp.ok() && stamp->version == (*job)->version && stamp->pinned == (*job)->pinned;
  if (current && IsTerminal((*job)->state) && !reply->files_missing()) {
    memo_.Keep((*job)->id, *stamp, *reply);
  }
  return absl::OkStatus();
}

absl::StatusOr<v1::Job> TrainingCalls::DescribeWhole(const Job& job) const {
  v1::Job described = Describe(job);
  JobHistory history;
  ASSIGN_OR_RETURN(history.metrics, CurveOf(job));
  ASSIGN_OR_RETURN(history.answers, store_->ListAnswers(job.id));
  *described.mutable_report() = ToProto(ReportOf(job, history, loop_->Now()));
  for (v1::Trial& trial : TrialsOf(job)) *described.add_trials() = std::move(trial);
  if (auto search = SearchOf(job)) *described.mutable_search() = *std::move(search);
  return described;
}

// Reads the metrics that the report of an ended Job needs.
absl::StatusOr<std::vector<MetricPoint>> TrainingCalls::CurveOf(const Job& job) const {
  std::vector<MetricPoint> curve;
  if (!IsTerminal(job.state)) return curve;
  for (const char* const name : {"val_metric", kImportanceMetric}) {
    for (int64_t after = 0;;) {
      ASSIGN_OR_RETURN(std::vector<StoredMetric> page,
                       store_->GetMetrics(job.id, after, kRecordPage, name));
      if (page.empty()) break;
      after = page.back().sequence;
      for (StoredMetric& metric : page) curve.push_back(std::move(metric.point));
    }
  }
  return curve;
}

absl::Status TrainingCalls::ListJobs(const v1::ListJobsRequest& request, v1::ListJobsReply* reply) {
  JobFilter filter;
  for (const int state : request.states()) filter.states.push_back(static_cast<JobState>(state));
  filter.labels.insert(request.labels().begin(), request.labels().end());
  if (request.page_size() < 0 || request.page_size() > kMaxPage) {
    return absl::InvalidArgumentError(absl::StrCat("page_size: not in 0-", kMaxPage));
  }
  filter.limit = request.page_size() == 0 ? kDefaultPage : request.page_size();
  filter.page_token = request.page_token();
  // The views know what is not stored: why a Job waits, when it will be done.
  filter.known = [this](const std::string& id) { return loop_->views().Find(id).job; };
  const auto page = store_->ListJobs(filter);
  if (!page.ok()) return page.status();
  reply->mutable_jobs()->Reserve(static_cast<int>(page->jobs.size()));
  for (const auto& job : page->jobs) *reply->add_jobs() = Describe(*job, /*brief=*/true);
  reply->set_next_page_token(page->next_page_token);
  return absl::OkStatus();
}

// A Job that changes all the time is told ten times a second; its end is told at once.
void TrainingCalls::PauseWatch(const std::string& id) const {
  const absl::Duration until = SystemClock().MonotonicNow() + kWatchEvery;
  JobViews::View view = loop_->views().Find(id);
  while (view.job != nullptr && !IsTerminal(view.job->state) && !loop_->views().closed()) {
    const absl::Duration left = until - SystemClock().MonotonicNow();
    if (left <= absl::ZeroDuration()) return;
    view = loop_->views().Wait(id, view.change, left);
  }
}

absl::Status TrainingCalls::WatchJob(const v1::WatchJobRequest& request,
                                     const ReplySink<v1::Job>& replies) {
  const auto found = Find(request.id());
  if (!found.ok()) return found.status();
  const std::string id = (*found)->id;
  uint64_t seen = 0;
  while (!replies.cancelled()) {
    const JobViews::View view = loop_->views().Find(id);
    std::shared_ptr<const Job> job = view.job;
    if (job == nullptr) {  // over, and no longer in the views
      const auto stored = Find(id);
      if (!stored.ok()) return stored.status();
      job = *stored;
    }
    // A terminal Job is told in any case: it is what ends a watch.
    if ((view.job == nullptr || view.change > seen) &&
        (job->version > request.since_version() || IsTerminal(job->state))) {
      seen = view.change;
      if (!replies.write(Describe(*job))) break;
      if (IsTerminal(job->state)) return absl::OkStatus();
      PauseWatch(id);
      continue;
    }
    if (IsTerminal(job->state)) return absl::OkStatus();
    loop_->views().Wait(id, std::max(seen, view.change), kLookAround);
    if (loop_->views().closed()) {
      return absl::UnavailableError("traind is stopping; watch again when it is back");
    }
  }
  return absl::CancelledError();
}

template <typename Request, typename PageReply, typename AddPage>
absl::Status TrainingCalls::SendRecord(const Request& request, const ReplySink<PageReply>& replies,
                                       const AddPage& add_page) {
  const auto found = Find(request.id());
  if (!found.ok()) return found.status();
  const std::string id = (*found)->id;
  int64_t after = request.after_sequence();
  while (!replies.cancelled()) {
    // The view comes before the page, because a Job that is over adds nothing afterwards.
    const JobViews::View view = loop_->views().Find(id);
    const bool over = view.job == nullptr || IsTerminal(view.job->state);
    PageReply reply;
    ASSIGN_OR_RETURN(const int added, add_page(id, &after, &reply));
    const bool last = added < kRecordPage && (over || !request.follow());
    reply.set_end(last);
    if ((last || added > 0) && !replies.write(reply)) break;
    if (last) return absl::OkStatus();
    if (added == kRecordPage) continue;
    loop_->views().Wait(id, view.change, kLookAround);
    if (loop_->views().closed()) {
      return absl::UnavailableError("traind is stopping; ask again when it is back");
    }
  }
  return absl::CancelledError();
}

absl::Status TrainingCalls::GetMetrics(const v1::GetMetricsRequest& request,
                                       const ReplySink<v1::MetricsReply>& replies) {
  return SendRecord(request, replies,
                    [this](const std::string& id, int64_t* after,
                           v1::MetricsReply* reply) -> absl::StatusOr<int> {
                      ASSIGN_OR_RETURN(const auto points,
                                       store_->GetMetrics(id, *after, kRecordPage, ""));
                      for (const StoredMetric& metric : points) {
                        *reply->add_points() = ToProto(metric.sequence, metric.point);
                        *after = metric.sequence;
                      }
                      return static_cast<int>(points.size());
                    });
}

absl::Status TrainingCalls::GetEvents(const v1::GetEventsRequest& request,
                                      const ReplySink<v1::EventsReply>& replies) {
  return SendRecord(
      request, replies,
      [this](const std::string& id, int64_t* after, v1::EventsReply* reply) -> absl::StatusOr<int> {
        ASSIGN_OR_RETURN(const auto events, store_->GetEvents(id, *after, kRecordPage));
        for (const StoredEvent& event : events) {
          v1::JobEvent& to = *reply->add_events();
          to.set_sequence(event.sequence);
          *to.mutable_at() = ToProto(event.at);
          to.set_kind(event.kind);
          to.set_detail(event.detail);
          *after = event.sequence;
        }
        return static_cast<int>(events.size());
      });
}

absl::StatusOr<ArtifactReader> TrainingCalls::OpenResults(const Job& job) const {
  if (!RunsProgram(job.spec)) {
    return absl::NotFoundError(absl::StrCat("job ", job.id, " runs no program (`run`)"));
  }
  ASSIGN_OR_RETURN(const v1::JobSpec spec, SpecFromJson(job.spec_json));
  if (const std::string& folder = spec.run().results(); !folder.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat("the files of job ", job.id, " are in the folder ", folder,
                     " on traind's machine; traind keeps those of programs that were uploaded"));
  }
  return ArtifactReader::OpenResults(state_dir_, job.id);
}

absl::StatusOr<ArtifactReader> TrainingCalls::OpenArtifact(
    const v1::FetchArtifactRequest& request) const {
  ASSIGN_OR_RETURN(const auto job, Find(request.id()));
  if (FilesMissing(*job)) return absl::NotFoundError(CheckFilesOf(*job).message());
  if (request.name() == kResultsPack) return OpenResults(*job);
  return ArtifactReader::Open(state_dir_, job->id, request.name());
}

absl::Status TrainingCalls::FetchArtifact(const v1::FetchArtifactRequest& request,
                                          const ReplySink<v1::FetchArtifactReply>& replies) {
  ASSIGN_OR_RETURN(ArtifactReader reader, OpenArtifact(request));
  bool first = true;
  while (true) {
    v1::FetchArtifactReply reply;
    if (first) {
      reply.set_sha256(reader.digest().sha256);
      reply.set_bytes(reader.digest().bytes);
    }
    ASSIGN_OR_RETURN(std::string part, reader.Next());
    if (part.empty() && !first) return absl::OkStatus();
    reply.set_data(std::move(part));
    if (!replies.write(reply)) return absl::CancelledError();
    first = false;
  }
}

}  // namespace traind
