// TrainingCalls: predicting with models that exist.
#include <absl/strings/str_cat.h>
#include <absl/time/clock.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "common/base/clock.h"
#include "common/base/durable_file.h"
#include "common/base/status_macros.h"
#include "common/spec/spec_rules.h"
#include "server/rpc/job_conversion.h"
#include "server/rpc/training_calls.h"
#include "server/rpc/worker_gateway.h"

namespace traind {
namespace {

constexpr size_t kMaxName = 63;
constexpr int kMaxRows = 10'000;
constexpr size_t kMaxRowBytes = 1 << 20;
// gRPC clients take no larger message unless they say so.
constexpr size_t kMaxReplyBytes = (4 << 20) - 1024;
constexpr absl::Duration kRowsPatience = absl::Seconds(10);  // where the call has no deadline
// So many Jobs may serve at a time, because each holds its models in the memory of a Rank.
constexpr int kMostServers = 32;
constexpr absl::Duration kAskAgain = absl::Milliseconds(10);

std::string NameFor(const Job& source, absl::string_view suffix) {
  return absl::StrCat(source.spec.name.substr(0, kMaxName - suffix.size()), suffix);
}

absl::Status CheckRows(const v1::PredictRowsRequest& request) {
  if (request.rows_size() == 0) return absl::InvalidArgumentError("rows: there is none");
  if (request.rows_size() > kMaxRows) {
    return absl::InvalidArgumentError(absl::StrCat("rows: ", request.rows_size(), "; at most ",
                                                   kMaxRows, " are answered at once"));
  }
  if (request.ByteSizeLong() > kMaxRowBytes) {
    return absl::InvalidArgumentError("rows: more than 1 MiB at once");
  }
  for (int row = 0; row < request.rows_size(); ++row) {
    if (request.rows(row).values_size() == request.columns_size()) continue;
    return absl::InvalidArgumentError(absl::StrCat("rows: row ", row + 1, " has ",
                                                   request.rows(row).values_size(), " values, not ",
                                                   request.columns_size(), " as the columns"));
  }
  return absl::OkStatus();
}

absl::Status CheckReply(const v1::PredictRowsReply& reply) {
  if (reply.ByteSizeLong() <= kMaxReplyBytes) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat("rows: the answer to ", reply.rows_size(), " of them has ", reply.ByteSizeLong(),
                   " bytes, more than a message may have; send at most ",
                   reply.rows_size() * kMaxReplyBytes / reply.ByteSizeLong(), " at once"));
}

absl::Duration LeftUntil(absl::Duration deadline) {
  return std::max(deadline - SystemClock().MonotonicNow(), absl::ZeroDuration());
}

absl::Status NotLoaded() {
  return absl::UnavailableError("the models could not be loaded in time");
}

// The same models would fail again.
absl::Status CheckServed(const std::shared_ptr<const Job>& server) {
  if (server == nullptr || server->state != JobState::kFailed) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("the models cannot be served: ", server->end_message));
}

// The Attempt of a Job that serves; null: none runs.
const Attempt* RunningAttempt(const Job& job) {
  for (const Attempt& attempt : job.attempts) {
    if (attempt.ended_at == absl::InfiniteFuture()) return &attempt;
  }
  return nullptr;
}

}  // namespace

void TrainingCalls::Predict(const Caller& caller, const v1::PredictRequest& request,
                            v1::SubmitReply* reply, Done done) {
  const auto source = Find(request.id());
  if (!source.ok()) return done(source.status());
  v1::JobSpec spec;
  spec.set_api("v1");
  spec.set_name(request.name().empty() ? NameFor(**source, "-predict") : request.name());
  spec.mutable_predict()->set_from((*source)->id);
  spec.mutable_predict()->set_data(request.data());
  spec.mutable_predict()->set_min_members(request.min_members());
  if (request.has_budget()) *spec.mutable_budget()->mutable_time() = request.budget();
  if (request.has_deadline()) *spec.mutable_budget()->mutable_deadline() = request.deadline();
  if (request.has_predictions()) *spec.mutable_predictions() = request.predictions();
  *spec.mutable_labels() = request.labels();
  spec.set_priority(request.priority());
  // Whoever asks for rows of somebody else's models pays for them.
  const std::string owner = caller.MayChange((*source)->owner) ? (*source)->owner : caller.name;
  Asked asked{owner, request.request_id(), Sha256Hex(SpecToJson(spec)), ""};
  if (const auto known = FindRepeated(asked)) {
    *reply->mutable_job() = Describe(*known);
    return done(absl::OkStatus());
  }
  if (const absl::Status many = CountSubmit(caller, ""); !many.ok()) return done(many);
  SubmitSpec(spec, std::move(asked), reply, std::move(done));
}

absl::StatusOr<std::shared_ptr<const Job>> TrainingCalls::StartServer(const Job& source,
                                                                      absl::Duration deadline) {
  v1::JobSpec spec;
  spec.set_api("v1");
  spec.set_name(NameFor(source, "-serve"));
  spec.mutable_serve()->set_from(source.id);
  ASSIGN_OR_RETURN(const CheckedSpec checked, CheckKind(spec, loop_->Now()));
  struct Outcome {
    absl::Mutex mutex;
    TimedCondVar answered;
    std::optional<Reply> reply ABSL_GUARDED_BY(mutex);
  };
  const auto outcome = std::make_shared<Outcome>();
  loop_->Submit(intake_->MakeJob(checked, source.owner, "", "", loop_->Now()),
                [outcome](const Reply& reply) {
                  absl::MutexLock lock(&outcome->mutex);
                  outcome->reply = reply;
                  outcome->answered.NotifyAll();
                });
  absl::MutexLock lock(&outcome->mutex);
  const auto answered = [&outcome] {
    outcome->mutex.AssertReaderHeld();
    return outcome->reply.has_value();
  };
  if (!outcome->answered.Await(outcome->mutex, LeftUntil(deadline), answered)) return NotLoaded();
  RETURN_IF_ERROR(outcome->reply->status);
  return outcome->reply->job;
}

int TrainingCalls::CountServers() const {
  const auto active = loop_->views().Active();
  return static_cast<int>(std::count_if(active.begin(), active.end(), [](const auto& job) {
    return !job->tasks.empty() && job->tasks[0].kind == TaskKind::kServe && !IsTerminal(job->state);
  }));
}

std::shared_ptr<const Job> TrainingCalls::KnownServer(const std::string& source) {
  const auto known = servers_.find(source);
  if (known != servers_.end()) {
    const auto view = loop_->views().Find(known->second);
    if (view.job != nullptr && !IsTerminal(view.job->state)) return view.job;
    servers_.erase(known);
  }
  // One that a traind before this one has started.
  for (const auto& job : loop_->views().Active()) {
    if (job->tasks.empty() || job->tasks[0].kind != TaskKind::kServe) continue;
    if (IsTerminal(job->state) || job->spec.models_from != source) continue;
    servers_[source] = job->id;
    return job;
  }
  return nullptr;
}

absl::StatusOr<std::shared_ptr<const Job>> TrainingCalls::FindServer(const Job& source,
                                                                     absl::Duration deadline) {
  {
    absl::MutexLock lock(&serving_);
    // Callers for the same models wait for one start; those for other models do not.
    const auto started = [&] {
      serving_.AssertReaderHeld();
      return starting_.count(source.id) == 0;
    };
    if (!started_.Await(serving_, LeftUntil(deadline), started)) return NotLoaded();
    if (auto job = KnownServer(source.id)) return job;
    if (CountServers() + static_cast<int>(starting_.size()) >= kMostServers) {
      return absl::ResourceExhaustedError(
          absl::StrCat("the models of ", kMostServers,
                       " jobs are held ready already; ask again when some have been idle, or "
                       "predict a file"));
    }
    starting_.insert(source.id);
  }
  auto job = StartServer(source, deadline);
  absl::MutexLock lock(&serving_);
  starting_.erase(source.id);
  started_.NotifyAll();
  if (job.ok()) servers_[source.id] = (*job)->id;
  return job;
}

absl::Status TrainingCalls::PredictRows(const v1::PredictRowsRequest& request,
                                        const CallLimits& limits, v1::PredictRowsReply* reply) {
  if (const absl::Status wrong = CheckRows(request); !wrong.ok()) return wrong;
  const auto source = Find(request.id());
  if (!source.ok()) return source.status();
  const absl::Duration deadline =
      SystemClock().MonotonicNow() + limits.patience.value_or(kRowsPatience);
  v1::AskRows ask;
  *ask.mutable_columns() = request.columns();
  *ask.mutable_rows() = request.rows();
  absl::Status last = NotLoaded();
  bool lost = false;
  std::string asked;
  while (LeftUntil(deadline) > absl::ZeroDuration() && !limits.cancelled()) {
    RETURN_IF_ERROR(CheckServed(loop_->views().Find(asked).job));
    const auto server = FindServer(**source, deadline);
    if (!server.ok()) return server.status();
    // It may have ended only now.
    if ((*server)->id != asked) RETURN_IF_ERROR(CheckServed(loop_->views().Find(asked).job));
    asked = (*server)->id;
    const JobViews::View view = loop_->views().Find((*server)->id);
    const Attempt* const attempt = view.job == nullptr ? nullptr : RunningAttempt(*view.job);
    if (attempt == nullptr) {
      loop_->views().Wait((*server)->id, view.change,
                          std::min(LeftUntil(deadline), absl::Milliseconds(500)));
      if (loop_->views().closed()) return absl::UnavailableError("traind is stopping");
      continue;
    }
    ask.set_attempt(attempt->id);
    auto answer = workers_->Ask(attempt->worker, ask, LeftUntil(deadline));
    if (answer.ok()) {
      *reply = *std::move(answer);
      reply->set_job((*server)->id);
      return CheckReply(*reply);
    }
    last = answer.status();
    // Rows that end each Rank which gets them must not end all that come.
    if (absl::IsAborted(last) && std::exchange(lost, true)) {
      last = absl::UnavailableError(
          absl::StrCat("the Rank that had the rows ended, twice: ", last.message()));
      break;
    }
    if (!absl::IsUnavailable(last) && !absl::IsAborted(last)) break;
    absl::SleepFor(std::min(kAskAgain, LeftUntil(deadline)));
  }
  if (absl::IsAborted(last)) last = absl::UnavailableError(last.message());
  return last;
}

}  // namespace traind
