// Takes in the facts that Workers send about Attempts. Each fact may come in any number of copies;
// facts about an Attempt that is over change nothing.
#include <absl/strings/str_cat.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "common/publish/fold_member.h"
#include "server/control/control_core_impl.h"
#include "server/domain/names.h"

namespace traind {
namespace {

// A running fold has at most one stored point per figure in so long.
constexpr absl::Duration kMetricEvery = absl::Seconds(2);
// The first epochs are all stored; after them, of shorter ones, one in so long.
constexpr int kEpochsStored = 100;
constexpr absl::Duration kEpochEvery = absl::Milliseconds(20);
// Epochs of which so many end within kPaceOver are measured together.
constexpr absl::Duration kPaceOver = absl::Seconds(1);
// and, where the window is long, over this share of it.
constexpr double kPaceShare = 0.1;
constexpr absl::Duration kPaceOverMost = absl::Seconds(10);
constexpr absl::Duration kPaceMark = absl::Milliseconds(100);
constexpr int kPaceEpochs = 10;

}  // namespace

void ControlCore::Impl::Handle(WorkerFact& event) {
  Acknowledge(event);
  const auto worker = workers_.find(event.worker);
  if (worker != workers_.end() && worker->second.session == event.session) {
    worker->second.last_seen = now_;
  }
  if (event.attempt == 0) return;
  const bool ended = event.fact && std::holds_alternative<facts::Ended>(*event.fact);
  const auto it = attempts_.find(event.attempt);
  AttemptPart* const part = it == attempts_.end() ? nullptr : it->second.PartOn(event.worker);
  if (part == nullptr) {
    if (ended) {
      if (worker != workers_.end() && worker->second.foreign.erase(event.attempt) > 0) {
        NoteWorker(worker->second);
      }
    } else {
      AbortStale(event.worker, event.attempt, "this Attempt is over");
    }
    return;
  }
  LiveAttempt& live = it->second;
  if (!live.open) {
    if (ended) {
      ErasePart(it, *part);
    } else if (!live.saved_last) {
      AbortStale(event.worker, event.attempt, "this Attempt is over");
    }
    return;
  }
  SetMissingBy(live, *part, absl::InfiniteFuture());
  Touch(*live.job);
  const bool leads = part->first_rank == 0;
  if (event.fact && leads) {
    std::visit([this, &live](auto& fact) { Apply(live, fact); }, *event.fact);
  } else if (ended) {
    PartEnded(live, *part, std::get<facts::Ended>(*event.fact));
  }
  if (ended) ErasePart(it, *part);
}

void ControlCore::Impl::Handle(CheckpointFound& event) {
  const auto it = attempts_.find(event.attempt);
  if (it == attempts_.end() || !it->second.open) return;
  Touch(*it->second.job);
  Apply(it->second, event.checkpoint);
}

void ControlCore::Impl::Acknowledge(const WorkerFact& fact) {
  if (fact.sequence <= 0) return;
  int64_t& sequence = acks_[{fact.worker, fact.session}];
  sequence = std::max(sequence, fact.sequence);
}

void ControlCore::Impl::AbortStale(const std::string& worker, int64_t attempt, const char* why) {
  if (aborted_.insert(attempt).second) {
    turn_.stops.push_back({worker, attempt, StopMode::kAbort, StopReason::kStale, why});
  }
}

void ControlCore::Impl::Apply(LiveAttempt& live, facts::TableReady& fact) {
  JobEntry& entry = *live.job;
  if (UsesModels(live.kind)) {
    if (entry.view().table.test_rows == fact.test_rows) return;
    Job& job = EditDurably(entry);
    job.table.test_rows = fact.test_rows;
    job.warnings.insert(job.warnings.end(), fact.warnings.begin(), fact.warnings.end());
    return;
  }
  entry.home = live.lead();
  if (!entry.view().table.table.empty()) return;
  Job& job = EditDurably(entry);
  job.table = {fact.table,     fact.content_sha256, fact.train_rows,
               fact.test_rows, fact.features,       fact.classes};
  for (std::string& warning : fact.warnings) {
    if (std::find(job.warnings.begin(), job.warnings.end(), warning) == job.warnings.end()) {
      job.warnings.push_back(std::move(warning));
    }
  }
  Log(entry, "table",
      absl::StrCat(job.table.train_rows, " + ", job.table.test_rows, " rows, ", job.table.features,
                   " features, ", fact.cached ? "cached" : "read in ",
                   fact.cached ? "" : Text(absl::Milliseconds(fact.read_ms))));
  // Folds may start now; the real Plan comes with their first timed steps.
  if (job.plans.empty()) Replan(entry, Trigger::kTable);
}

void ControlCore::Impl::Apply(LiveAttempt& live, facts::FloorReady& fact) {
  JobEntry& entry = *live.job;
  const Job& job = entry.view();
  if (job.floor_model == fact.model && job.floor_score == fact.score) return;
  Job& edited = EditDurably(entry);
  edited.floor_model = fact.model;
  edited.floor_score = fact.score;
  entry.publication.wanted = true;
  Log(entry, "floor", absl::StrCat(fact.model, " ", fact.score));
}

void ControlCore::Impl::Apply(LiveAttempt& live, facts::Started& fact) {
  JobEntry& entry = *live.job;
  if (live.kind != TaskKind::kTrain || live.first_step_at != absl::InfiniteFuture()) return;
  live.first_step_at = now_;
  live.first_step = fact.first_step;
  live.batch = fact.batch;
  Job& job = Edit(entry);
  bool told = false;  // before traind was killed; the Attempt may have saved a checkpoint since
  double fetch_s = 0;
  for (Attempt& row : job.attempts) {
    if (row.id != live.id) continue;
    told = row.first_step >= 0;
    fetch_s = row.transfers.fetch_s;
    row.first_step = fact.first_step;
  }
  Task& task = job.tasks[static_cast<size_t>(live.task)];
  if (IsTerminal(task.state)) return;
  // One of its own was found before it was heard.
  const bool before = task.checkpoint && task.checkpoint->attempt != live.id;
  if (!told && before && fact.first_step < task.checkpoint->step) {
    TakeBack(live, task, fact);
    entry.pace.replan_wanted = true;
  } else if (!told && !before && fact.start_epoch + 1 <= task.epochs_done) {
    // It began before the checkpoint that it was given, which it could not read. What it has saved
    // since stays.
    task.epochs_done = live.last_epoch = fact.start_epoch;
    entry.pace.replan_wanted = true;
  }
  if (!told) task.spent.probe_s += absl::ToDoubleSeconds(now_ - live.started_at);
  task.measured.steps_per_epoch = fact.steps_per_epoch;
  if (fact.start_epoch > task.epochs_done) task.epochs_done = fact.start_epoch;
  task.live.emplace();
  task.live->at = now_;
  task.live->step = fact.first_step;
  task.live->epoch = task.epochs_done;
  task.live->precision = fact.precision;
  task.live->batch = fact.batch;
  task.live->steps_per_epoch = fact.steps_per_epoch;
  task.live->resolved_settings = fact.resolved_settings;
  if (told || !HeardAllAlong(live)) return;
  // The next fold finds the files there, or fetches them for as long as TransferCostOf tells.
  const double start_s = absl::ToDoubleSeconds(now_ - live.started_at) - fetch_s;
  entry.pace.overhead_s = std::max(entry.pace.overhead_s, start_s);
}

// Whether the streams of its Workers have held since it began. Otherwise a fact may have waited for
// traind, or the gang for its meeting, and the time until now says nothing of the Attempt.
bool ControlCore::Impl::HeardAllAlong(const LiveAttempt& live) const {
  return std::all_of(live.parts.begin(), live.parts.end(), [&](const AttemptPart& part) {
    const WorkerState& worker = workers_.at(part.worker);
    return worker.attached && worker.attached_at <= live.started_at;
  });
}

// The Rank could not read the checkpoint that it was given and went on from an earlier one, or
// from none: what was done since is lost.
void ControlCore::Impl::TakeBack(LiveAttempt& live, Task& task, const facts::Started& fact) {
  task.epochs_done = fact.start_epoch;
  live.last_epoch = fact.start_epoch;
  if (fact.first_step > 0) return;
  task.checkpoint.reset();
  task.row_share = 1;
}

void ControlCore::Impl::Apply(LiveAttempt& live, facts::Probe& fact) {
  JobEntry& entry = *live.job;
  if (live.kind != TaskKind::kTrain) return;
  Measured& measured = Edit(entry).tasks[static_cast<size_t>(live.task)].measured;
  measured.step_s = fact.step_s;
  measured.step_p90_s = fact.step_p90_s;
  measured.evaluate_s = fact.evaluate_s;
  measured.predict_s = std::max(measured.predict_s, fact.predict_s);
  entry.pace.replan_wanted = true;
}

void ControlCore::Impl::Apply(LiveAttempt& live, facts::Progress& fact) {
  JobEntry& entry = *live.job;
  if (live.kind != TaskKind::kTrain) return;
  Task& task = EditLive(entry).tasks[static_cast<size_t>(live.task)];
  if (task.state != TaskState::kRunning) return;
  Live figures = task.live ? *task.live : Live{};
  figures.at = now_;
  figures.step = fact.step;
  figures.epoch = fact.epoch;
  figures.loss = std::isnan(fact.loss) ? 0 : fact.loss;
  figures.learning_rate = fact.lr;
  figures.steps_per_s = fact.steps_per_s;
  figures.samples_per_s = fact.samples_per_s;
  figures.data_wait = fact.data_wait;
  task.live = figures;
  // The end of a long epoch would tell it too late.
  if (PacedWithinEpoch(entry, live.task)) entry.pace.replan_wanted = true;
  if (now_ - live.metric_at < kMetricEvery) return;
  live.metric_at = now_;
  // Trees and some programs tell no loss of the training.
  if (figures.loss != 0) AddMetric(live, figures.step, figures.epoch, "loss", figures.loss);
  AddMetric(live, figures.step, figures.epoch, "learning_rate", figures.learning_rate);
  AddMetric(live, figures.step, figures.epoch, "samples_per_s", figures.samples_per_s);
  for (const auto& [name, value] : facts::Signals(fact)) {
    AddMetric(live, figures.step, figures.epoch, name, value);
  }
}

void ControlCore::Impl::Apply(LiveAttempt& live, facts::Epoch& fact) {
  JobEntry& entry = *live.job;
  if (live.kind != TaskKind::kTrain || fact.epoch <= live.last_epoch) return;
  const bool next = fact.epoch == live.last_epoch + 1;
  live.last_epoch = fact.epoch;
  Task& task = Edit(entry).tasks[static_cast<size_t>(live.task)];
  if (task.state != TaskState::kRunning) return;
  task.epochs_done = fact.epoch;
  if (!std::isnan(fact.best_metric)) task.score = fact.best_metric;
  task.losses = 0;  // progress
  task.row_share = std::min(task.row_share, fact.row_share);
  if (!fact.head_only) task.measured.epoch_s = fact.epoch_s / fact.row_share;
  task.measured.evaluate_s = fact.evaluate_s;
  task.spent.validate_s += fact.evaluate_s;
  // Checkpoints and predictions between epochs cost time too. A silent Worker's
  // epochs come late and all at once: such gaps say little.
  double epoch_s = fact.epoch_s + fact.evaluate_s;
  if (next && live.last_epoch_at != absl::InfiniteFuture()) {
    const double wall_s = absl::ToDoubleSeconds(now_ - live.last_epoch_at);
    epoch_s = std::clamp(wall_s, epoch_s, 2 * epoch_s);
  }
  std::vector<double>& epochs = entry.pace.epochs_s[static_cast<size_t>(live.task)];
  if (!fact.head_only) MarkPace(live, epochs, epoch_s, fact);
  live.last_epoch_at = now_;
  entry.pace.replan_wanted = true;
  StopAtRung(live, fact);
  // Thousands a second would keep the database from all else.
  if (fact.epoch > kEpochsStored && now_ - live.epoch_stored_at < kEpochEvery) return;
  live.epoch_stored_at = now_;
  if (fact.train_loss != 0) {
    AddMetric(live, fact.step, fact.epoch, "train_loss", fact.train_loss);
  }
  AddMetric(live, fact.step, fact.epoch, "val_loss", fact.val_loss);
  AddMetric(live, fact.step, fact.epoch, "val_metric", fact.val_metric);
}

// The last three epochs; but of short ones the mean over the last second or two, in which
// there were many: one alone says nothing when it is as short as the machine's own unrest.
void ControlCore::Impl::MarkPace(LiveAttempt& live, std::vector<double>& epochs, double epoch_s,
                                 const facts::Epoch& fact) const {
  const auto of_all_rows = [&fact](double took_s) {
    if (fact.row_share >= 1) return took_s;
    return fact.evaluate_s + std::max(0.0, took_s - fact.evaluate_s) / fact.row_share;
  };
  if (std::exchange(live.marked_row_share, fact.row_share) != fact.row_share) {
    live.marks.clear();
    live.paced = false;
  }
  const Window window = WindowOf(*live.job);
  const absl::Duration over =
      window.bounded() ? std::clamp(kPaceShare * window.length(), kPaceOver, kPaceOverMost)
                       : kPaceOver;
  if (live.marks.empty() || now_ - live.marks.back().first >= kPaceMark) {
    while (live.marks.size() > 1 && now_ - live.marks[1].first >= over) {
      live.marks.pop_front();
    }
    if (!live.marks.empty() && now_ - live.marks.front().first >= kPaceOver) {
      const int count = live.last_epoch - live.marks.front().second;
      const double took_s = absl::ToDoubleSeconds(now_ - live.marks.front().first);
      live.paced = count >= kPaceEpochs;
      if (live.paced) epochs.assign(3, of_all_rows(took_s / count));
    }
    live.marks.emplace_back(now_, live.last_epoch);
  }
  if (live.paced) return;
  epochs.push_back(of_all_rows(epoch_s));
  if (epochs.size() > 3) epochs.erase(epochs.begin());
}

void ControlCore::Impl::Apply(LiveAttempt& live, facts::CheckpointSaved& fact) {
  JobEntry& entry = *live.job;
  if (live.kind != TaskKind::kTrain) return;
  const Task& seen = entry.view().tasks[static_cast<size_t>(live.task)];
  if (seen.checkpoint && seen.checkpoint->attempt == live.id &&
      seen.checkpoint->step >= fact.step) {
    return;
  }
  Task& task = EditDurably(entry).tasks[static_cast<size_t>(live.task)];
  Checkpoint checkpoint{live.id,    task.fold,        task.trial,    task.seed,
                        fact.step,  fact.epoch,       fact.manifest, fact.sha256,
                        fact.bytes, fact.best_metric, now_};
  task.losses = 0;
  task.checkpoint = checkpoint;
  Log(entry, "checkpoint", absl::StrCat(live.id, " step ", checkpoint.step));
  turn_.mutations.checkpoints.emplace_back(entry.view().id, std::move(checkpoint));
}

void ControlCore::Impl::Apply(LiveAttempt& live, facts::FoldSaved& fact) {
  JobEntry& entry = *live.job;
  if (live.kind != TaskKind::kTrain) return;
  const Job& before = entry.view();
  if (IsTerminal(before.tasks[static_cast<size_t>(live.task)].state)) return;
  Job& job = EditDurably(entry);
  Task& task = job.tasks[static_cast<size_t>(live.task)];
  // A program of a user may tell no metric: there is no score then, which is not one of 0.
  const bool scored = !RunsProgram(job.spec) || !std::isnan(fact.score);
  if (!scored) fact.score = 0;
  Member member = MemberOf(live.id, fact);
  member.fold = task.fold;
  member.trial = task.trial;
  member.seed = task.seed;
  member.kind = KindOf(job.spec, task.trial);
  if (fact.last && fact.complete && live.last_epoch_at != absl::InfiniteFuture()) {
    double& longest = entry.pace.finishing_s[member.kind];
    longest = std::max(longest, absl::ToDoubleSeconds(now_ - live.last_epoch_at));
  }
  if (fact.predict_s > 0) task.measured.predict_s = fact.predict_s;
  task.spent.predict_s += std::max(0.0, fact.predict_s);
  task.epochs_done = std::max(task.epochs_done, member.epochs_done);
  // The member of an earlier Attempt stays if it is better and this one is not complete.
  const bool keeps = task.member && task.member->attempt != live.id && !member.complete &&
                     (job.spec.higher_is_better ? task.member->score > member.score
                                                : task.member->score < member.score);
  // An extra model answers once its training is over: then its predictions and its last
  // checkpoint are of the same weights.
  const bool early = IsExtra(task) && !fact.last;
  if (!keeps && !early) {
    task.score = scored ? std::optional<double>(member.score) : std::nullopt;
    task.member = std::move(member);
    entry.publication.wanted = true;
  }
  entry.pace.replan_wanted = true;
  if (!fact.last) return;
  live.saved_last = true;
  SettleFold(entry, live.task,
             fact.stopped_by == StopCause::kNone
                 ? std::string()
                 : absl::StrCat("stopped by ", Name(fact.stopped_by)));
}

void ControlCore::Impl::Apply(LiveAttempt& live, facts::Ended& fact) {
  // An older Worker does not know that reason.
  if (!live.preempted_for.empty() && fact.reason == AttemptEndReason::kShutdown) {
    fact.reason = AttemptEndReason::kPreempted;
    fact.message = absl::StrCat("preempted by ", live.preempted_for);
  }
  EndAttempt(live, fact.reason, fact.message);
}

void ControlCore::Impl::Apply(LiveAttempt& live, facts::Decision& fact) {
  JobEntry& entry = *live.job;
  const Task& task = entry.view().tasks[static_cast<size_t>(live.task)];
  std::string cause = absl::StrCat(TaskName(task), ": ", fact.cause);
  for (const Decision& decision : entry.view().decisions) {
    if (decision.rule == fact.rule && decision.cause == cause && decision.from == fact.from &&
        decision.to == fact.to) {
      return;
    }
  }
  Decide(entry, fact.rule, std::move(cause), fact.from, fact.to);
}

void ControlCore::Impl::Apply(LiveAttempt& live, facts::Resources& fact) {
  JobEntry& entry = *live.job;
  if (live.kind != TaskKind::kTrain) return;
  bool told = false;
  for (const Attempt& row : entry.view().attempts) {
    told = told || row.resources.summary == fact.summary;
  }
  // Folds on the same devices with the same settings would repeat it.
  if (!told) Log(entry, "resources", fact.summary);
  for (Attempt& row : Edit(entry).attempts) {
    if (row.id == live.id) row.resources = fact;
  }
}

void ControlCore::Impl::Apply(LiveAttempt& live, facts::Importance& fact) {
  if (live.kind != TaskKind::kTrain) return;
  for (Attempt& row : Edit(*live.job).attempts) {
    if (row.id != live.id) continue;
    if (row.columns_told) return;  // A Worker that has got no Ack tells it again.
    row.columns_told = true;
  }
  for (size_t i = 0; i < fact.columns.size(); ++i) {
    AddMetric(live, 0, 0, absl::StrCat(kImportanceMetric, fact.columns[i]), fact.drops[i]);
  }
}

void ControlCore::Impl::AddMetric(const LiveAttempt& live, int64_t step, double epoch,
                                  std::string name, double value) {
  if (std::isnan(value)) return;  // not told
  const Job& job = live.job->view();
  turn_.mutations.metrics.push_back({job.id, now_, job.tasks[static_cast<size_t>(live.task)].fold,
                                     live.id, step, epoch, std::move(name), value});
}

}  // namespace traind
