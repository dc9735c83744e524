// SimProcess: later files and rows, as worker/inference predicts them.
#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "common/base/job_layout.h"
#include "tests/simulation/sim_rank.h"

namespace traind::simulation {

namespace rp = rank_protocol;

namespace {

// Before the deadline, in which the answer is published.
constexpr absl::Duration kToPublish = absl::Milliseconds(230);
constexpr double kBetween = 0.2;  // chance of a Prediction between two models
// Chance that the first model has reached a row when the time is up.
constexpr double kReached = 0.5;

}  // namespace

// As clients.cc has written them.
void SimProcess::ReadModels(const std::string& spec_json) {
  const auto spec = nlohmann::json::parse(spec_json);
  inference_.from = spec["from"];
  for (const auto& of : spec["models"]) {
    SimModel& model = inference_.models.emplace_back();
    model.path = of["path"];
    model.member.fold = of["fold"];
    model.member.trial = of["trial"];
    model.member.seed = of["seed"];
    model.member.complete = of["complete"];
  }
}

// Somebody has removed a model that does not exist any more.
bool SimProcess::HasModel(size_t model) const {
  const std::string& path = inference_.models[model].path;
  if (!around_.disk->List(path + "/").empty()) return true;
  nlohmann::json& record = around_.world->Record("model_gone");
  record["attempt"] = attempt_;
  record["job"] = job_;
  record["path"] = path;
  return false;
}

std::string SimProcess::ValuesPath(const std::string& attempt, size_t model) const {
  return absl::StrCat(JobDir(job_), "/attempts/", attempt, "/values-", model, ".npy");
}

// ---- PREDICT ----

void SimProcess::PredictFile(const rp::Predict& predict) {
  BeginTask(predict.attempt, predict.job, 0);
  ReadModels(predict.spec_json);
  if (predict.remaining_ms >= 0) inference_.answer_at = Moment(predict.remaining_ms) - kToPublish;
  Schedule(absl::Seconds(1), &SimProcess::Tick, false);
  Schedule(absl::Seconds(truth_.read_s * around_.world->chance.Uniform(0.9, 1.2)),
           &SimProcess::ReadLater);
  if (inference_.answer_at != absl::InfiniteFuture()) {
    Schedule(std::max(inference_.answer_at - around_.world->now(), absl::ZeroDuration()),
             &SimProcess::AnswerInTime, false);
  }
  DrawFault(1);
}

void SimProcess::ReadLater() {
  if (truth_.bad_data) {
    return Fail(AttemptEndReason::kDataError, "later.csv, row 7: 3 fields instead of 4");
  }
  if (around_.disk->full) return Fail(AttemptEndReason::kStorageFull, "no space for the rows");
  facts::TableReady ready;
  ready.test_rows = 100;
  ready.features = 4;
  Tell(std::move(ready));
  inference_.read = true;
  FindEarlierValues();
  NextModel();
}

// Of Attempts before this one.
void SimProcess::FindEarlierValues() {
  for (const std::string& path : around_.disk->List(absl::StrCat(JobDir(job_), "/attempts/"))) {
    for (size_t model = 0; model < inference_.models.size(); ++model) {
      const std::string name = absl::StrCat("/values-", model, ".npy");
      if (absl::EndsWith(path, name)) inference_.answered.insert(model);
    }
  }
}

void SimProcess::NextModel() {
  size_t& next = inference_.next;
  const size_t models = inference_.models.size();
  while (next < models && (inference_.answered.count(next) > 0 || !HasModel(next))) ++next;
  if (next == models) return PublishAnswer(true);
  const double tail = around_.faults->heavy_tails ? around_.world->chance.HeavyTail() : 1.0;
  Schedule(absl::Seconds(truth_.predict_s * tail) + around_.disk->SyncTime(),
           &SimProcess::ModelDone);
}

void SimProcess::ModelDone() {
  if (around_.disk->full) return Fail(AttemptEndReason::kStorageFull, "no space for the values");
  const std::string path = ValuesPath(absl::StrCat(attempt_), inference_.next);
  around_.disk->Write(path, "values");
  around_.disk->Sync(path);
  inference_.answered.insert(inference_.next++);
  if (inference_.next < inference_.models.size() && around_.world->chance.Happens(kBetween)) {
    return PublishAnswer(false);
  }
  NextModel();
}

// What there is answers; without any model, the rows that the first one has reached.
void SimProcess::AnswerInTime() {
  if (stalled_ || hung_ || stopping_) return;
  stopping_ = true;
  ++chain_;
  if (inference_.serves) return LeaveIfIdle();
  if (!inference_.publishing) PublishAnswer(true);
}

void SimProcess::StopInference(bool predict) {
  if (hung_ || stalled_ || stopping_) return;
  inference_.drops = !predict;
  AnswerInTime();
}

void SimProcess::PublishAnswer(bool last) {
  SimInference& in = inference_;
  if (in.drops) return Finish();
  const bool stand_in = in.answered.empty();
  if (stand_in && !in.models.empty() && in.next == in.models.size()) {
    return Fail(AttemptEndReason::kUserError, "no model can predict");
  }
  if (!stand_in && in.answered.size() == in.published) return Finish();
  if (stand_in && (!in.read || !around_.world->chance.Happens(kReached))) {
    return Fail(AttemptEndReason::kStoppedInTime, "the time was too short");
  }
  Publishing publishing;
  publishing.answer.emplace();
  PublishedPrediction& answer = *publishing.answer;
  for (const size_t model : in.answered) answer.members.push_back(in.models[model].member);
  if (stand_in) answer.members.push_back(in.models.front().member);
  const bool all = in.answered.size() == in.models.size();
  answer.quality = stand_in ? Quality::kFloor : all ? Quality::kFull : Quality::kDegraded;
  for (const size_t model : in.answered)
    absl::StrAppend(&answer.sha256, in.models[model].path, " ");
  if (stand_in) answer.sha256 = absl::StrCat("some rows of ", attempt_);
  in.publishing = true;
  in.published = in.answered.size();
  Chance& chance = around_.world->chance;
  const double tail = around_.faults->heavy_tails ? chance.HeavyTail() : 1.0;
  publishing.request.job = job_;
  publishing.stamp = around_.world->wall();
  publishing.cost = absl::Seconds(std::min(0.15, chance.LogUniform(0.004, 0.06) * tail));
  const auto held = shared_from_this();
  const int task = task_;
  publishing.alive = [held, task] { return !held->dead_ && !held->over_ && held->task_ == task; };
  publishing.done = [held, alive = publishing.alive,
                     last](const absl::StatusOr<PublishedPrediction>& result) {
    if (alive()) held->AnswerStands(result, last);
  };
  around_.disk->Publish(std::move(publishing));
}

void SimProcess::AnswerStands(const absl::StatusOr<PublishedPrediction>& result, bool last) {
  inference_.publishing = false;
  if (hung_ || stalled_) return;
  if (!result.ok()) {
    const bool full = absl::IsResourceExhausted(result.status());
    return Fail(full ? AttemptEndReason::kStorageFull : AttemptEndReason::kInternal,
                std::string(result.status().message()));
  }
  rp::Predicted predicted;
  predicted.attempt = attempt_;
  predicted.number = result->number;
  predicted.members = static_cast<int>(inference_.answered.size());
  around_.say(predicted);
  if (inference_.drops) return Finish();
  if (last) {
    RemoveScratch();
    return Finish();
  }
  stopping_ ? PublishAnswer(true) : NextModel();
}

void SimProcess::RemoveScratch() {
  for (const size_t model : inference_.answered) {
    around_.disk->Remove(ValuesPath(absl::StrCat(attempt_), model));
  }
}

// ---- SERVE ----

void SimProcess::Serve(const rp::Serve& serve) {
  BeginTask(serve.attempt, serve.job, 0);
  ReadModels(serve.spec_json);
  inference_.serves = true;
  Schedule(absl::Seconds(1), &SimProcess::Tick, false);
  Schedule(absl::Seconds(truth_.start_s * around_.world->chance.Uniform(0.8, 1.3)),
           &SimProcess::LoadModels);
  DrawFault(1);
}

void SimProcess::LoadModels() {
  int loaded = 0;
  for (size_t model = 0; model < inference_.models.size(); ++model) loaded += HasModel(model);
  if (loaded == 0) return Fail(AttemptEndReason::kUserError, "no model can predict");
  stepped_ = true;
  rp::Serving serving;
  serving.attempt = attempt_;
  serving.members = loaded;
  around_.say(serving);
  inference_.idle_since = around_.world->now();
  AnswerRows();
  LeaveIfIdle();
}

void SimProcess::TakeRows(const rp::Rows& rows) {
  inference_.rows.push_back(rows);
  if (!stepped_ || inference_.rows.size() > 1) return;  // they are of the next batch
  Schedule(absl::Seconds(around_.world->chance.LogUniform(0.001, 0.05)), &SimProcess::AnswerRows);
}

void SimProcess::AnswerRows() {
  if (hung_ || stalled_) return;
  for (const rp::Rows& rows : std::exchange(inference_.rows, {})) {
    rp::Answered answer;
    answer.attempt = attempt_;
    answer.request = rows.request;
    answer.members = inference_.from;
    answer.more = around_.world->chance.Happens(0.1);
    around_.say(answer);
    inference_.idle_since = around_.world->now();
    if (std::exchange(answer.more, false)) around_.say(answer);
  }
}

void SimProcess::LeaveIfIdle() {
  if (hung_ || stalled_) return;
  const absl::Time leaves = inference_.idle_since + absl::Seconds(truth_.idle_s);
  if (!stopping_ && (around_.world->now() < leaves || !inference_.rows.empty())) {
    return Schedule(std::max(leaves - around_.world->now(), absl::Milliseconds(100)),
                    &SimProcess::LeaveIfIdle, false);
  }
  for (const rp::Rows& rows : std::exchange(inference_.rows, {})) {
    rp::Answered refused;
    refused.attempt = attempt_;
    refused.request = rows.request;
    refused.code = absl::StrCat(static_cast<int>(absl::StatusCode::kUnavailable));
    refused.message = "the models are about to be unloaded";
    around_.say(refused);
  }
  Finish();
}

}  // namespace traind::simulation
