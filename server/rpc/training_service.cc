#include "server/rpc/training_service.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>
#include <absl/synchronization/notification.h>
#include <absl/time/clock.h>
#include <google/protobuf/util/time_util.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "common/base/duration.h"
#include "common/base/status_macros.h"
#include "common/spec/spec_rules.h"
#include "server/domain/names.h"
#include "server/plan/planner.h"
#include "server/plan/quota_use.h"
#include "server/plan/speed_guess.h"
#include "server/rpc/artifact_reader.h"
#include "server/rpc/job_conversion.h"
#include "server/rpc/trial_settings.h"

namespace traind {
namespace {

using google::protobuf::util::TimeUtil;

constexpr int kMaxStreams = 256;
constexpr int kMaxStreamsOfConnection = 64;
constexpr int kDefaultPage = 100;
constexpr int kMaxPage = 1000;
constexpr int kMetricsPage = 1000;
constexpr absl::Duration kWatchEvery = absl::Milliseconds(100);
// How long a stream sleeps at most before it looks whether its client is gone.
constexpr absl::Duration kLookAround = absl::Milliseconds(500);

absl::Status ManyStreams(int most, absl::string_view whose) {
  return absl::ResourceExhaustedError(absl::StrCat("more than ", most, " streams", whose,
                                                   " are open; end some, or ask with GetJob"));
}

}  // namespace

// Counts a stream while it is open.
class TrainingService::OpenStream {
 public:
  OpenStream(TrainingService& service, const grpc::ServerContext& context)
      : service_(service), connection_(context.peer()) {
    absl::MutexLock lock(&service_.streams_mutex_);
    if (++service_.streams_of_[connection_] > kMaxStreamsOfConnection) {
      status_ = ManyStreams(kMaxStreamsOfConnection, " of this connection");
    }
    if (++service_.open_streams_ > kMaxStreams) status_ = ManyStreams(kMaxStreams, "");
  }
  ~OpenStream() {
    absl::MutexLock lock(&service_.streams_mutex_);
    --service_.open_streams_;
    const auto mine = service_.streams_of_.find(connection_);
    if (--mine->second == 0) service_.streams_of_.erase(mine);
  }
  OpenStream(const OpenStream&) = delete;
  OpenStream& operator=(const OpenStream&) = delete;
  // ResourceExhausted: the stream must not stay open.
  const absl::Status& status() const { return status_; }

 private:
  TrainingService& service_;
  const std::string connection_;
  absl::Status status_;
};

v1::Job TrainingService::Describe(const Job& job, bool brief) const {
  v1::Job described = ToProto(job, {state_dir_, loop_->Now(), brief});
  described.set_files_missing(FilesMissing(job));
  return described;
}

absl::StatusOr<std::shared_ptr<const Job>> TrainingService::Find(
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

absl::Status TrainingService::SeveralCalled(absl::string_view name,
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

ControlLoop::Answer TrainingService::JobAnswer(grpc::ServerUnaryReactor* reactor,
                                               v1::Job* reply) const {
  return [this, reactor, reply](const Reply& answer) {
    if (answer.status.ok() && answer.job != nullptr) *reply = Describe(*answer.job);
    reactor->Finish(ToGrpc(answer.status));
  };
}

absl::StatusOr<std::string> TrainingService::FindLive(const std::string& id_or_name) const {
  ASSIGN_OR_RETURN(const auto job, Find(id_or_name));
  if (!IsTerminal(job->state)) return job->id;
  return absl::FailedPreconditionError(absl::StrCat("job ", job->id, " is ", Name(job->state),
                                                    " already; what is over does not change"));
}

grpc::ServerUnaryReactor* TrainingService::Change(grpc::CallbackServerContext* context,
                                                  const std::string& id, v1::Job* reply,
                                                  LoopCall call) {
  grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
  const auto job = FindLive(id);
  if (!job.ok()) {
    reactor->Finish(ToGrpc(job.status()));
  } else {
    (loop_->*call)(*job, JobAnswer(reactor, reply));
  }
  return reactor;
}

grpc::ServerUnaryReactor* TrainingService::FinishJob(grpc::CallbackServerContext* context,
                                                     const v1::FinishJobRequest* request,
                                                     v1::Job* reply) {
  return Change(context, request->id(), reply, &ControlLoop::Finish);
}

grpc::ServerUnaryReactor* TrainingService::CancelJob(grpc::CallbackServerContext* context,
                                                     const v1::CancelJobRequest* request,
                                                     v1::Job* reply) {
  return Change(context, request->id(), reply, &ControlLoop::Cancel);
}

grpc::ServerUnaryReactor* TrainingService::PauseJob(grpc::CallbackServerContext* context,
                                                    const v1::PauseJobRequest* request,
                                                    v1::Job* reply) {
  return Change(context, request->id(), reply, &ControlLoop::Pause);
}

grpc::ServerUnaryReactor* TrainingService::ResumeJob(grpc::CallbackServerContext* context,
                                                     const v1::ResumeJobRequest* request,
                                                     v1::Job* reply) {
  return Change(context, request->id(), reply, &ControlLoop::Resume);
}

absl::StatusOr<Update> TrainingService::CheckUpdate(const v1::UpdateJobRequest& request) const {
  Update update;
  ASSIGN_OR_RETURN(update.job, FindLive(request.id()));
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

grpc::ServerUnaryReactor* TrainingService::UpdateJob(grpc::CallbackServerContext* context,
                                                     const v1::UpdateJobRequest* request,
                                                     v1::Job* reply) {
  grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
  auto update = CheckUpdate(*request);
  if (!update.ok()) {
    reactor->Finish(ToGrpc(update.status()));
  } else {
    loop_->Update(*std::move(update), JobAnswer(reactor, reply));
  }
  return reactor;
}

grpc::Status TrainingService::Plan(grpc::ServerContext*, const v1::PlanRequest* request,
                                   v1::PlanReply* reply) {
  const absl::Time now = loop_->Now();
  const auto owner = OwnerOf(request->owner());
  if (!owner.ok()) return ToGrpc(owner.status());
  const auto spec = WithSource(request->spec());
  if (!spec.ok()) return ToGrpc(spec.status());
  const auto checked = intake_->Check(*spec, now);
  if (!checked.ok()) return ToGrpc(checked.status());
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
  return grpc::Status::OK;
}

// Returns what is left of the quotas that the Job would pay from.
void TrainingService::AddQuotas(const std::string& owner, const Spec& spec,
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

grpc::Status TrainingService::GetJob(grpc::ServerContext*, const v1::GetJobRequest* request,
                                     v1::Job* reply) {
  const auto job = Find(request->id());
  if (!job.ok()) return ToGrpc(job.status());
  *reply = Describe(**job);
  const auto metrics = CurveOf(**job);
  if (!metrics.ok()) return ToGrpc(metrics.status());
  *reply->mutable_report() = ToProto(ReportOf(**job, *metrics, loop_->Now()));
  for (v1::Trial& trial : TrialsOf(**job)) *reply->add_trials() = std::move(trial);
  if (auto search = SearchOf(**job)) *reply->mutable_search() = *std::move(search);
  return grpc::Status::OK;
}

// Reads the metrics that the report of an ended Job needs.
absl::StatusOr<std::vector<MetricPoint>> TrainingService::CurveOf(const Job& job) const {
  std::vector<MetricPoint> curve;
  if (!IsTerminal(job.state)) return curve;
  for (int64_t after = 0;;) {
    ASSIGN_OR_RETURN(std::vector<StoredMetric> page,
                     store_->GetMetrics(job.id, after, kMetricsPage, "val_metric"));
    if (page.empty()) return curve;
    after = page.back().sequence;
    for (StoredMetric& metric : page) {
      curve.push_back(std::move(metric.point));
    }
  }
}

grpc::Status TrainingService::ListJobs(grpc::ServerContext*, const v1::ListJobsRequest* request,
                                       v1::ListJobsReply* reply) {
  JobFilter filter;
  for (const int state : request->states()) filter.states.push_back(static_cast<JobState>(state));
  filter.labels.insert(request->labels().begin(), request->labels().end());
  if (request->page_size() < 0 || request->page_size() > kMaxPage) {
    return ToGrpc(absl::InvalidArgumentError(absl::StrCat("page_size: not in 0-", kMaxPage)));
  }
  filter.limit = request->page_size() == 0 ? kDefaultPage : request->page_size();
  filter.page_token = request->page_token();
  const auto page = store_->ListJobs(filter);
  if (!page.ok()) return ToGrpc(page.status());
  for (const Job& job : page->jobs) {
    // The views know what is not stored: why it waits, when it will be done.
    const auto view = loop_->views().Find(job.id);
    *reply->add_jobs() = Describe(view.job != nullptr ? *view.job : job, /*brief=*/true);
  }
  reply->set_next_page_token(page->next_page_token);
  return grpc::Status::OK;
}

grpc::Status TrainingService::WatchJob(grpc::ServerContext* context,
                                       const v1::WatchJobRequest* request,
                                       grpc::ServerWriter<v1::Job>* writer) {
  const OpenStream open(*this, *context);
  if (!open.status().ok()) return ToGrpc(open.status());
  const auto found = Find(request->id());
  if (!found.ok()) return ToGrpc(found.status());
  const std::string id = (*found)->id;
  uint64_t seen = 0;
  while (!context->IsCancelled()) {
    const JobViews::View view = loop_->views().Find(id);
    std::shared_ptr<const Job> job = view.job;
    if (job == nullptr) {  // over, and no longer in the views
      const auto stored = Find(id);
      if (!stored.ok()) return ToGrpc(stored.status());
      job = *stored;
    }
    // A terminal Job is told in any case: it is what ends a watch.
    if ((view.job == nullptr || view.change > seen) &&
        (job->version > request->since_version() || IsTerminal(job->state))) {
      seen = view.change;
      if (!writer->Write(Describe(*job))) break;
      if (IsTerminal(job->state)) return grpc::Status::OK;
      absl::SleepFor(kWatchEvery);
      continue;
    }
    if (IsTerminal(job->state)) return grpc::Status::OK;
    loop_->views().Wait(id, std::max(seen, view.change), kLookAround);
    if (loop_->views().closed()) {
      return ToGrpc(absl::UnavailableError("traind is stopping; watch again when it is back"));
    }
  }
  return grpc::Status::CANCELLED;
}

grpc::Status TrainingService::GetMetrics(grpc::ServerContext* context,
                                         const v1::GetMetricsRequest* request,
                                         grpc::ServerWriter<v1::MetricsReply>* writer) {
  const OpenStream open(*this, *context);
  if (!open.status().ok()) return ToGrpc(open.status());
  const auto found = Find(request->id());
  if (!found.ok()) return ToGrpc(found.status());
  const std::string id = (*found)->id;
  int64_t after = request->after_sequence();
  while (!context->IsCancelled()) {
    // Looked at before the points: what is over adds none afterwards.
    const JobViews::View view = loop_->views().Find(id);
    const bool over = view.job == nullptr || IsTerminal(view.job->state);
    const auto points = store_->GetMetrics(id, after, kMetricsPage, "");
    if (!points.ok()) return ToGrpc(points.status());
    v1::MetricsReply reply;
    for (const StoredMetric& metric : *points) {
      *reply.add_points() = ToProto(metric.sequence, metric.point);
      after = metric.sequence;
    }
    const bool last = points->size() < kMetricsPage && (over || !request->follow());
    reply.set_end(last);
    if ((last || !points->empty()) && !writer->Write(reply)) break;
    if (last) return grpc::Status::OK;
    if (points->size() == kMetricsPage) continue;
    loop_->views().Wait(id, view.change, kLookAround);
    if (loop_->views().closed()) {
      return ToGrpc(absl::UnavailableError("traind is stopping; ask again when it is back"));
    }
  }
  return grpc::Status::CANCELLED;
}

grpc::Status TrainingService::FetchArtifact(grpc::ServerContext*,
                                            const v1::FetchArtifactRequest* request,
                                            grpc::ServerWriter<v1::FetchArtifactReply>* writer) {
  const auto job = Find(request->id());
  if (!job.ok()) return ToGrpc(job.status());
  if (FilesMissing(**job)) {
    return ToGrpc(absl::NotFoundError(CheckFilesOf(**job).message()));
  }
  auto reader = ArtifactReader::Open(state_dir_, (*job)->id, request->name());
  if (!reader.ok()) return ToGrpc(reader.status());
  bool first = true;
  while (true) {
    v1::FetchArtifactReply reply;
    if (first) {
      reply.set_sha256(reader->digest().sha256);
      reply.set_bytes(reader->digest().bytes);
    }
    auto part = reader->Next();
    if (!part.ok()) return ToGrpc(part.status());
    if (part->empty() && !first) return grpc::Status::OK;
    reply.set_data(*std::move(part));
    if (!writer->Write(reply)) return grpc::Status::CANCELLED;
    first = false;
  }
}

grpc::Status TrainingService::ListWorkers(grpc::ServerContext*, const v1::ListWorkersRequest*,
                                          v1::ListWorkersReply* reply) {
  std::vector<v1::WorkerInfo> workers = workers_->Workers();
  std::sort(workers.begin(), workers.end(),
            [](const v1::WorkerInfo& a, const v1::WorkerInfo& b) { return a.id() < b.id(); });
  for (v1::WorkerInfo& worker : workers) *reply->add_workers() = std::move(worker);
  for (const auto& job : loop_->views().Active()) {
    for (const Attempt& attempt : job->attempts) {
      if (attempt.ended_at != absl::InfiniteFuture()) continue;
      for (v1::WorkerInfo& worker : *reply->mutable_workers()) {
        if (worker.id() != attempt.worker) continue;
        for (v1::SlotInfo& slot : *worker.mutable_slots()) {
          if (std::find(attempt.slots.begin(), attempt.slots.end(), slot.index()) ==
              attempt.slots.end()) {
            continue;
          }
          slot.set_job(job->id);
          slot.set_task(TaskName(attempt));
          slot.set_attempt(attempt.id);
        }
      }
    }
  }
  return grpc::Status::OK;
}

}  // namespace traind
