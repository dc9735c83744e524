#include "tests/simulation/clients.h"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "common/base/job_layout.h"
#include "server/intake/models.h"

namespace traind::simulation {
namespace {

// As server/rpc/predict_calls.cc.
constexpr absl::Duration kRowsPatience = absl::Seconds(10);
constexpr absl::Duration kAskAgain = absl::Milliseconds(10), kLookAgain = absl::Milliseconds(50);
constexpr int kMostTries = 40;

bool IsOver(const absl::StatusOr<Job>& job) { return !job.ok() || IsTerminal(job->state); }

}  // namespace

// ---- what is asked

void Clients::Choose(const std::vector<std::string>& requests, absl::Time until) {
  sources_ = requests;
  const double length_s = absl::ToDoubleSeconds(until - world_->now());
  const auto moment = [&] { return world_->now() + absl::Seconds(chance_.Uniform(1, length_s)); };
  for (int i = chance_.Int(1, 5); i > 0; --i) ChoosePredict(moment());
  for (int i = chance_.Int(0, 3); i > 0; --i) ChooseRows(moment(), chance_.Int(1, 8));
  for (int i = chance_.Int(-1, 2); i > 0; --i) ChooseDeletion(moment());
}

void Clients::AskAtTheEnd(absl::Duration after) {
  const absl::Time at = world_->now() + after;
  until_ = at + absl::Seconds(5);
  world_->At(at, [this, at] {
    calm_ = true;
    ChoosePredict(at);
    ChooseRows(at, 2);
  });
}

void Clients::Told(const JobTruth& truth, const char* what, const std::string& source) {
  nlohmann::json& told = world_->Record("asked");
  told["job"] = absl::StrCat("job-", truth.request);
  told["what"] = what;
  told["source"] = source;
  told["window_s"] = truth.spec.budget ? absl::ToDoubleSeconds(*truth.spec.budget) : -1;
  told["read_s"] = truth.read_s;
  told["predict_s"] = truth.predict_s;
  told["bad_data"] = truth.bad_data;
  told["calm"] = calm_;
}

void Clients::ChoosePredict(absl::Time at) {
  JobTruth truth;
  truth.request = absl::StrCat("p", predicts_++);
  truth.spec.name = truth.request;
  truth.spec.has_test = true;
  if (chance_.Happens(0.8)) truth.spec.budget = absl::Seconds(chance_.LogUniform(0.7, 30));
  truth.read_s = chance_.LogUniform(0.01, 0.5);
  truth.predict_s = chance_.LogUniform(0.005, 2);
  truth.bad_data = chance_.Happens(0.05);
  truth.saves = 0;
  const std::string& source =
      sources_[static_cast<size_t>(chance_.Int(0, static_cast<int>(sources_.size()) - 1))];
  const bool twice = chance_.Happens(0.2), ends = chance_.Happens(0.35);
  const bool cancels = chance_.Happens(0.35), loses_source = chance_.Happens(0.2);
  const absl::Duration lost_after = absl::Seconds(chance_.LogUniform(0.0005, 0.1));
  const absl::Duration patience = absl::Seconds(chance_.LogUniform(0.1, 8));
  last_due_ = std::max(last_due_, at + truth.spec.budget.value_or(absl::Seconds(5)));
  Told(truth, "PREDICT", source);
  world_->history.back()["interrupted"] = ends;
  const std::string request = truth.request;
  (*truths_)[request] = std::move(truth);
  world_->At(at, [this, request, source] { Submit(request, source, 0); });
  if (twice) {
    world_->At(at + absl::Milliseconds(chance_.Int(0, 2000)),
               [this, request, source] { Submit(request, source, 0); });
  }
  if (loses_source && !calm_) DeleteAt(at + lost_after, source);
  if (ends) world_->At(at + patience, [this, request, cancels] { EndEarly(request, cancels, 0); });
}

void Clients::ChooseRows(absl::Time at, int calls) {
  const std::string& source =
      sources_[static_cast<size_t>(chance_.Int(0, static_cast<int>(sources_.size()) - 1))];
  for (; calls > 0; --calls) {
    const absl::Duration patience =
        calm_ || chance_.Happens(0.7) ? kRowsPatience : absl::Seconds(chance_.LogUniform(0.2, 10));
    world_->At(at, [this, source, patience] { AskRows(source, patience); });
    at += absl::Seconds(chance_.LogUniform(0.005, 3));
  }
  last_due_ = std::max(last_due_, at);
}

void Clients::ChooseDeletion(absl::Time at) {
  DeleteAt(at,
           sources_[static_cast<size_t>(chance_.Int(0, static_cast<int>(sources_.size()) - 1))]);
}

void Clients::DeleteAt(absl::Time at, const std::string& source) {
  world_->At(at, [this, source] {
    const auto known = acked_->find(source);
    if (known == acked_->end() || !coordinator_->up()) return;
    const auto job = coordinator_->store().GetJob(known->second);
    if (job.ok() && coordinator_->Now() - job->finished_at > absl::Seconds(1)) {
      collector_->Delete(known->second);
    }
  });
}

bool Clients::AllOver() {
  if (open_calls_ > 0 || world_->now() < until_) return false;
  for (const auto& [source, jobs] : served_) {
    for (const std::string& job : jobs) {
      const auto known = coordinator_->store().GetJob(job);
      if (known.ok() && !IsTerminal(known->state)) return false;
    }
  }
  return true;
}

// ---- PREDICT

absl::StatusOr<std::string> Clients::ModelsNow(const std::string& source) const {
  const auto job = coordinator_->store().GetJob(source);
  if (!job.ok()) return job.status();
  const bool floor = !disk_->List(absl::StrCat(FloorDir(source), "/")).empty();
  const auto set = ModelsOf(*job, disk_->Standing(source), floor);
  if (!set.ok()) return set.status();
  nlohmann::json spec = {{"from", source}, {"models", nlohmann::json::array()}};
  for (const v1::ModelRef& model : set->models()) {
    if (disk_->List(model.path() + "/").empty()) {
      return absl::FailedPreconditionError("somebody has removed a model");
    }
    spec["models"].push_back({{"path", model.path()},
                              {"fold", model.fold()},
                              {"trial", model.trial()},
                              {"seed", model.seed()},
                              {"complete", model.complete()}});
  }
  return spec.dump();
}

Job Clients::MakeJob(const std::string& request, TaskKind kind, const std::string& source,
                     std::string models) const {
  Job job;
  job.id = absl::StrCat("job-", request);
  job.spec = truths_->at(request).spec;
  job.spec.metric = "accuracy";
  job.spec.folds = 0;
  job.spec.epochs = 0;
  job.spec.models_from = source;
  job.spec_json = std::move(models);
  job.spec_sha256 = request;
  job.tasks.resize(1);
  job.tasks[0].kind = kind;
  return job;
}

// Which models answer is looked up some time before traind hears of the Job.
void Clients::Submit(const std::string& request, const std::string& source_request, int tries) {
  const auto again = [this, request, source_request, tries] {
    if (tries >= kMostTries) return;
    world_->After(
        absl::Milliseconds(chance_.Int(200, 1000)),
        [this, request, source_request, tries] { Submit(request, source_request, tries + 1); });
  };
  const auto acked = [this, request](const std::string& id) {
    (*acked_)[request] = id;
    nlohmann::json& record = world_->Record("submit_ack");
    record["request"] = request;
    record["job"] = id;
  };
  const auto source = acked_->find(source_request);
  if (!coordinator_->up() || source == acked_->end()) return again();
  if (acked_->count(request) > 0) return;
  const auto known = coordinator_->store().FindByRequest("local", request);
  if (known.ok() && IsTerminal(known->state)) return acked(known->id);
  const auto models = ModelsNow(source->second);
  if (absl::IsNotFound(models.status())) {
    world_->Record("source_deleted")["request"] = request;
    return;
  }
  if (!models.ok()) return again();
  Job job = MakeJob(request, TaskKind::kPredict, source->second, *models);
  job.request_id = request;
  const absl::Duration checked = absl::Seconds(chance_.LogUniform(0.001, 0.3));
  world_->After(checked, [this, job, acked, again] {
    coordinator_->Call(
        [job](CallId call) -> Event {
          return traind::Submit{call, job};
        },
        [this, job, acked, again](const Reply& reply) {
          if (reply.status.ok()) return acked(reply.job->id);
          if (absl::IsUnavailable(reply.status) || absl::IsResourceExhausted(reply.status)) {
            return again();
          }
          nlohmann::json& record = world_->Record("ask_refused");
          record["job"] = job.id;
          record["source"] = job.spec.models_from;
          record["status"] = reply.status.ToString();
        });
  });
}

void Clients::EndEarly(const std::string& request, bool cancels, int tries) {
  const auto known = acked_->find(request);
  if (known == acked_->end() || tries > 20) return;
  coordinator_->Call(
      [cancels, id = known->second](CallId call) -> Event {
        if (cancels) return Cancel{call, id};
        return Finish{call, id};
      },
      [this, request, cancels, tries](const Reply& reply) {
        if (!absl::IsUnavailable(reply.status) && !absl::IsResourceExhausted(reply.status)) return;
        world_->After(absl::Milliseconds(500),
                      [this, request, cancels, tries] { EndEarly(request, cancels, tries + 1); });
      });
}

// ---- rows at once, as server/rpc/predict_calls.cc does

void Clients::AskRows(const std::string& source_request, absl::Duration patience) {
  const auto source = acked_->find(source_request);
  if (source == acked_->end() || !coordinator_->up()) return;
  const auto call = std::make_shared<RowsCall>();
  call->id = ++calls_;
  call->source = source->second;
  call->deadline = world_->now() + patience;
  call->starts = coordinator_->starts();
  call->last = absl::UnavailableError("the models could not be loaded in time");
  ++open_calls_;
  nlohmann::json& record = world_->Record("rows_call");
  record["call"] = call->id;
  record["source"] = call->source;
  record["patience"] = absl::ToInt64Microseconds(patience);
  record["calm"] = calm_;
  Go(call);
}

void Clients::End(const Call& call, const absl::Status& status, const std::string& answered_by) {
  nlohmann::json& record = world_->Record("rows_end");
  record["call"] = call->id;
  record["status"] = absl::StatusCodeToString(status.code());
  record["why"] = std::string(status.message());
  record["answered_by"] = answered_by;
  if (!std::exchange(call->over, true)) --open_calls_;
}

void Clients::GoLater(const Call& call, absl::Duration delay) {
  world_->After(delay, [this, call] { Go(call); });
}

std::optional<Job> Clients::FindServer(const std::string& source) {
  for (const std::string& id : served_[source]) {
    auto job = coordinator_->store().GetJob(id);
    if (!IsOver(job)) return *std::move(job);
  }
  return std::nullopt;
}

void Clients::Go(const Call& call) {
  if (!coordinator_->up() || coordinator_->starts() != call->starts) {
    return End(call, absl::CancelledError("the connection was lost"), "");
  }
  if (world_->now() >= call->deadline) return End(call, call->last, "");
  if (starting_.count(call->source) > 0) return GoLater(call, kLookAgain);
  const auto server = FindServer(call->source);
  if (!server) return StartServer(call);
  const auto attempt =
      std::find_if(server->attempts.begin(), server->attempts.end(),
                   [](const Attempt& a) { return a.ended_at == absl::InfiniteFuture(); });
  if (attempt == server->attempts.end()) return GoLater(call, kLookAgain);
  const auto told = std::make_shared<bool>(false);
  const auto question = std::make_shared<uint64_t>(0);
  *question = coordinator_->AskRows(attempt->worker, attempt->id,
                                    [this, call, told](const absl::StatusOr<std::string>& answer) {
                                      if (!std::exchange(*told, true)) Answered(call, answer);
                                    });
  world_->At(call->deadline, [this, call, told, question, starts = call->starts] {
    if (std::exchange(*told, true)) return;
    coordinator_->gateway().Forget(*question);
    const bool lives = coordinator_->up() && coordinator_->starts() == starts;
    End(call,
        lives ? absl::UnavailableError("the models have not answered in time")
              : absl::CancelledError("the connection was lost"),
        "");
  });
}

void Clients::Answered(const Call& call, const absl::StatusOr<std::string>& answer) {
  if (answer.ok()) return End(call, absl::OkStatus(), *answer);
  call->last = answer.status();
  if (absl::IsAborted(call->last) && std::exchange(call->lost, true)) {
    return End(call, absl::UnavailableError("the Rank that had the rows ended, twice"), "");
  }
  if (!absl::IsUnavailable(call->last) && !absl::IsAborted(call->last)) {
    return End(call, call->last, "");
  }
  GoLater(call, kAskAgain);
}

void Clients::StartServer(const Call& call) {
  const auto models = ModelsNow(call->source);
  if (!models.ok()) return End(call, models.status(), "");
  JobTruth truth;
  truth.request = absl::StrCat("s", servers_++);
  truth.spec.name = truth.request;
  truth.spec.has_test = false;
  truth.start_s = chance_.LogUniform(0.02, 1);
  truth.idle_s = chance_.LogUniform(0.3, 3);
  Told(truth, "SERVE", call->source);
  world_->history.back()["interrupted"] = false;
  const std::string request = truth.request;
  (*truths_)[request] = std::move(truth);
  const Job job = MakeJob(request, TaskKind::kServe, call->source, *models);
  served_[call->source].push_back(job.id);
  starting_.insert(call->source);
  // traind may not answer.
  world_->At(call->deadline, [this, source = call->source] { starting_.erase(source); });
  const absl::Duration checked = absl::Seconds(chance_.LogUniform(0.001, 0.1));
  world_->After(checked, [this, job, call] {
    coordinator_->Call(
        [job](CallId id) -> Event {
          return traind::Submit{id, job};
        },
        [this, call](const Reply& reply) {
          starting_.erase(call->source);
          if (!reply.status.ok()) return End(call, reply.status, "");
          Go(call);
        });
  });
}

}  // namespace traind::simulation
