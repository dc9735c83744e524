// Jobs as paragraphs.
#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>
#include <absl/strings/str_join.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "client/fold_text.h"
#include "client/job_cells.h"
#include "client/render_table.h"
#include "client/time_left.h"
#include "client/trials.h"
#include "common/base/bytes_text.h"
#include "common/base/duration.h"
#include "common/facts/reasons.h"
#include "common/job_rules/program_rules.h"

namespace traind {
namespace {

// A Job that tries many settings has hundreds; the first and the last of them are shown.
constexpr int kMostDecisions = 8;

std::string ProgressCell(const v1::Progress& progress) {
  if (progress.planned() == 0) return "";
  return absl::StrFormat("%.4g/%.4g", progress.done(), progress.planned());
}

std::string FoldsText(const v1::Job& job) {
  const v1::Prediction& prediction = job.predictions();
  if (prediction.folds().empty()) return "none: the floor answers";
  const std::string indices = absl::StrJoin(prediction.folds(), " ");
  if (!job.models_from().empty()) {
    return absl::StrFormat("of %s answer: %s", Printable(job.models_from()), indices);
  }
  const auto models =
      std::count_if(prediction.members().begin(), prediction.members().end(),
                    [](const v1::PredictionMember& member) { return member.fold() >= 0; });
  const std::string more =
      models > prediction.folds_size() ? absl::StrFormat(", with %d models", models) : "";
  return absl::StrFormat("%d of %d answer: %s%s", prediction.folds_size(), CountFolds(job), indices,
                         more);
}

// Whether its time began later than at its acceptance.
bool Waited(const v1::Job& job) { return ClockStart(job) != ToTime(job.accepted_at()); }

std::string ScoresText(const v1::Scores& scores) {
  const std::string metric = scores.metric().empty() ? "score" : Printable(scores.metric());
  std::vector<std::string> parts;
  if (scores.has_oof()) {
    parts.push_back(
        absl::StrCat(metric, " ", ScoreText(scores.oof()), " out of fold",
                     scores.comparable() ? "" : " (not comparable: not every fold is in it)"));
  }
  if (scores.has_test()) {
    parts.push_back(absl::StrCat(parts.empty() ? metric + " " : "", ScoreText(scores.test()),
                                 " on the test file"));
  }
  if (scores.has_floor()) {
    parts.push_back(absl::StrCat(parts.empty() ? metric + " " : "", ScoreText(scores.floor()),
                                 " by the floor"));
  }
  return absl::StrJoin(parts, ", ");
}

// Returns "0.05: 3.1 % below, pinball 0.0213; ...", of the test file where it has the target.
std::string QuantilesText(const v1::Scores& scores) {
  const bool test = scores.test_quantiles_size() > 0;
  std::vector<std::string> parts;
  for (const v1::QuantileScore& score : test ? scores.test_quantiles() : scores.quantiles()) {
    parts.push_back(absl::StrFormat("%g: %.1f %% below, pinball %s", score.level(),
                                    100 * score.below(), ScoreText(score.pinball())));
  }
  if (parts.empty()) return "";
  return absl::StrJoin(parts, "; ") + (test ? " (test file)" : " (out of fold)");
}

// Returns "finished 12:00:41, 41s after acceptance, 19s before the deadline".
std::string TimesText(const v1::Job& job, absl::Time now) {
  std::vector<std::string> parts;
  if (job.has_finished_at()) {
    const absl::Time finished = ToTime(job.finished_at());
    parts.push_back("finished " + ClockText(job.finished_at(), now));
    parts.push_back(DurationToText(finished - ClockStart(job)) +
                    (Waited(job) ? " after its time began" : " after acceptance"));
    if (job.has_deadline()) {
      const absl::Duration left = ToTime(job.deadline()) - finished;
      parts.push_back(left >= absl::ZeroDuration() ? DurationToText(left) + " before the deadline"
                                                   : DurationToText(-left) + " after the deadline");
    }
  } else {
    parts.push_back("accepted " + ClockText(job.accepted_at(), now));
    if (job.has_deadline()) {
      parts.push_back(absl::StrCat("deadline ", ClockText(job.deadline(), now)));
      if (job.has_remaining_s()) {
        parts.back() +=
            " (in " + DurationToText(absl::Seconds(std::max(0.0, job.remaining_s()))) + ")";
      }
    } else {
      parts.push_back(job.has_runnable_at() || job.after().empty() ? "no deadline"
                                                                   : "its time has not begun");
    }
  }
  return absl::StrJoin(parts, ", ");
}

std::string FoldTable(const v1::Job& job) {
  TextTable table({"FOLD", "STATE", "PROGRESS", "SCORE", "ATTEMPTS", "NOTE"});
  for (const v1::Fold& fold : job.folds()) {
    // The leaderboard tells of other trials' folds, except why one failed.
    if (fold.trial() > 0 && fold.state() != v1::TASK_STATE_FAILED) continue;
    // The message of a fold that was reused as a whole says so already.
    const std::string from =
        fold.from_job().empty() || fold.reused()
            ? ""
            : absl::StrCat(fold.message().empty() ? "" : "; ", "begun by job ", fold.from_job());
    table.Add({FoldName(fold), Word(fold.state()), ProgressCell(fold.progress()),
               fold.has_score() ? ScoreText(fold.score()) : "", absl::StrCat(fold.attempts()),
               fold.message() + from});
  }
  return table.ToString();
}

// Returns in few words why a rule of the budget (docs/DESIGN.md) changes a Plan; empty: its name or
// the change says it.
absl::string_view ReasonOf(DecisionRule rule) {
  switch (rule) {
    case DecisionRule::kB2:
      return "to fit the time";
    case DecisionRule::kB3:
      return "by the time of the first fold";
    case DecisionRule::kB4:
      return "to leave time to predict";
    case DecisionRule::kB5:
      return "because the time is nearly over";
    case DecisionRule::kB7:
      return "so that the answer gets no worse";
    case DecisionRule::kB9:
      return "because time is left";
    default:
      return "";
  }
}

bool HasNoArithmetic(absl::string_view cause) {
  return !cause.empty() && cause.find_first_of("=;:(") == absl::string_view::npos;
}

// Returns a cause up to its arithmetic, which stands in brackets.
std::string FirstClause(absl::string_view cause) {
  return Printable(cause.substr(0, cause.find(" (")), 160);
}

std::string Epochs(double epochs) {
  return absl::StrFormat(epochs < 1000 ? "%.3g" : "%.0f", epochs);
}

// The machine's use by training: "utilisation 93 %, memory 130.2 MiB; an epoch: 0.12s of a
// slot".
std::string ResourcesText(const v1::Report& report) {
  std::vector<std::string> parts;
  if (report.has_utilisation()) {
    parts.push_back(absl::StrFormat("utilisation %.0f %%", 100 * report.utilisation()));
  }
  if (report.peak_memory_bytes() > 0) {
    parts.push_back(absl::StrCat("memory ", BytesText(report.peak_memory_bytes())));
  }
  if (report.peak_device_bytes() > 0) {
    parts.push_back(absl::StrCat("device memory ", BytesText(report.peak_device_bytes())));
  }
  if (report.has_energy_joules()) {
    parts.push_back(absl::StrFormat("energy %.4g kJ", report.energy_joules() / 1000));
  }
  std::string text = absl::StrJoin(parts, ", ");
  if (!report.has_epoch_device_s()) return text;
  absl::StrAppend(&text, text.empty() ? "" : "; ",
                  "an epoch: ", absl::StrFormat("%.3gs of a slot", report.epoch_device_s()));
  if (report.has_epoch_joules()) {
    absl::StrAppend(&text, absl::StrFormat(", %.3g J", report.epoch_joules()));
  }
  return text;
}

// The files of an Attempt, or of several, that travelled: "fetched 1.2 GiB in 12s, sent 3.1 MiB in
// 0.4s".
std::string TransfersText(const v1::Transfers& transfers) {
  std::vector<std::string> parts;
  const auto add = [&parts](const char* verb, int64_t bytes, double seconds) {
    if (bytes > 0) {
      parts.push_back(absl::StrCat(verb, " ", BytesText(bytes), " in ", Seconds(seconds)));
    }
  };
  add("fetched", transfers.fetched_bytes(), transfers.fetch_s());
  add("sent", transfers.sent_bytes(), transfers.send_s());
  return absl::StrJoin(parts, ", ");
}

// All transfers of a Job, and with `verbose` those of each Attempt.
void AddTransfers(std::string& text, const v1::Job& job, bool verbose) {
  v1::Transfers sum;
  for (const v1::AttemptSummary& attempt : job.attempts()) {
    const v1::Transfers& transfers = attempt.transfers();
    sum.set_fetched_bytes(sum.fetched_bytes() + transfers.fetched_bytes());
    sum.set_fetch_s(sum.fetch_s() + transfers.fetch_s());
    sum.set_sent_bytes(sum.sent_bytes() + transfers.sent_bytes());
    sum.set_send_s(sum.send_s() + transfers.send_s());
  }
  const std::string all = TransfersText(sum);
  if (all.empty()) return;
  AddLine(text, "transfers", all + " by all Attempts together");
  if (!verbose) return;
  for (const v1::AttemptSummary& attempt : job.attempts()) {
    const std::string own = TransfersText(attempt.transfers());
    if (own.empty()) continue;
    AddLine(text, "", absl::StrCat(attempt.task(), " on ", Printable(attempt.worker()), ": ", own));
  }
}

// The answers that have stood, a line each: when, how good, and by how many models.
void AddAnswers(std::string& text, const v1::Report& report) {
  for (int i = 0; i < report.answers_size(); ++i) {
    const v1::Answer& answer = report.answers(i);
    std::string line = absl::StrFormat("%2d  %8s  %-8s", answer.number(), Seconds(answer.at_s()),
                                       Word(answer.quality()));
    if (answer.has_oof()) {
      absl::StrAppend(&line, "  ", ScoreText(answer.oof()), " out of fold",
                      answer.comparable() ? "" : " (of a part of the folds)");
    }
    if (answer.has_test())
      absl::StrAppend(&line, ", ", ScoreText(answer.test()), " on the test file");
    absl::StrAppend(&line, answer.models() == 0   ? ", the floor"
                           : answer.models() == 1 ? ", 1 model"
                                                  : absl::StrCat(", ", answer.models(), " models"));
    AddLine(text, i == 0 ? "answers" : "", line);
  }
}

// "age 0.021 +- 0.003": how much worse the score gets without the column.
void AddImportance(std::string& text, const v1::Report& report, bool verbose) {
  constexpr int kMostColumns = 10;
  size_t width = 0;
  const int shown =
      verbose ? report.importance_size() : std::min(report.importance_size(), kMostColumns);
  for (int i = 0; i < shown; ++i) {
    width = std::max(width, Printable(report.importance(i).column(), 40).size());
  }
  for (int i = 0; i < shown; ++i) {
    const v1::ColumnImportance& of = report.importance(i);
    std::string line = absl::StrFormat("%-*s  %s", static_cast<int>(width),
                                       Printable(of.column(), 40), ScoreText(of.drop()));
    if (of.has_error()) absl::StrAppend(&line, " +- ", ScoreText(of.error()));
    AddLine(text, i == 0 ? "importance" : "", line);
  }
  const int more = report.importance_size() - shown;
  if (more > 0) AddLine(text, "", absl::StrCat("... ", more, " more: trainctl get --verbose"));
}

void AddReport(std::string& text, const v1::Report& report, bool verbose) {
  AddLine(
      text, "done",
      absl::StrFormat(
          "%d of %d folds%s%s%s, %s of %s epochs each", report.folds_done(), report.folds_asked(),
          report.folds_partial() > 0 ? absl::StrCat(", ", report.folds_partial(), " partly") : "",
          report.folds_reused() > 0 ? absl::StrCat(", ", report.folds_reused(), " taken over") : "",
          report.models_asked() > report.folds_asked()
              ? absl::StrCat(", ", report.models_trained(), " of ", report.models_asked(),
                             " models")
              : "",
          Epochs(report.epochs_done()), Epochs(report.epochs_asked())));
  AddLine(text, "spent",
          absl::StrFormat("queue %s, prepare %s, probe %s, train %s, validate %s, predict %s; "
                          "slot time %s",
                          Seconds(report.queue_s()), Seconds(report.prepare_s()),
                          Seconds(report.probe_s()), Seconds(report.train_s()),
                          Seconds(report.validate_s()), Seconds(report.predict_s()),
                          Seconds(report.device_s())));
  if (const std::string used = ResourcesText(report); !used.empty()) {
    AddLine(text, "resources", used);
  }
  for (const std::string& cut : report.cuts()) {
    AddLine(text, "cut", verbose ? Printable(cut, 800) : FirstClause(cut));
  }
  AddImportance(text, report, verbose);
  if (verbose) AddAnswers(text, report);
  if (!report.has_more()) return;
  const v1::MoreTime& more = report.more();
  std::string buys =
      absl::StrCat(ShortDuration(more.time()), " more: ", Printable(more.buys(), 200));
  if (more.has_score()) {
    absl::StrAppend(&buys, "; expected score ", ScoreText(more.score_now()), " -> ",
                    ScoreText(more.score()), " (", ScoreText(more.score_low()), " to ",
                    ScoreText(more.score_high()), ")");
  }
  AddLine(text, "more time", buys);
}

}  // namespace

std::string DecisionText(const v1::Decision& decision, bool verbose) {
  std::string text = Printable(decision.rule(), 64) + ": ";
  const DecisionRule rule = DecisionRuleByName(decision.rule());
  const bool change = !decision.from().empty() || !decision.to().empty();
  if (!change) {
    text += verbose ? Printable(decision.cause(), 400) : FirstClause(decision.cause());
  } else {
    absl::StrAppend(&text, Printable(decision.from(), 200), " -> ", Printable(decision.to(), 200));
    if (!verbose) {
      // B9 gives time back where there is some, and takes it where it is of no use.
      if (rule == DecisionRule::kB9 && HasNoArithmetic(decision.cause())) {
        return absl::StrCat(text, ", because ", Printable(decision.cause(), 160));
      }
      const absl::string_view why = ReasonOf(rule);
      return absl::StrCat(text, why.empty() ? "" : ", ", why);
    }
    if (!decision.cause().empty()) {
      absl::StrAppend(&text, " (", Printable(decision.cause(), 400), ")");
    }
  }
  if (verbose && !decision.effect().empty()) {
    absl::StrAppend(&text, "; expected: ", Printable(decision.effect(), 200));
  }
  return text;
}

bool ProgramsAnswer(const v1::Job& job) {
  const auto& members = job.predictions().members();
  return std::any_of(members.begin(), members.end(),
                     [](const auto& member) { return member.kind() == kCommandKind; });
}

bool KeepsResults(const v1::Job& job) {
  return !job.program_results().empty() &&
         absl::StartsWith(job.program_results(), absl::StrCat(job.results_dir(), "/"));
}

std::string JobLine(const v1::Job& job, bool color) {
  std::string text = absl::StrCat(Printable(job.id()), " ", StateText(job.state(), color));
  if (job.quality() != 0) absl::StrAppend(&text, "  quality ", Word(job.quality()));
  if (job.end_reason() != 0) absl::StrAppend(&text, "  ", Word(job.end_reason()));
  if (!job.end_message().empty()) absl::StrAppend(&text, ": ", Printable(job.end_message(), 1000));
  return text;
}

std::string JobSummary(const v1::Job& job, absl::Time now, const JobStyle& style) {
  std::string text = JobLine(job, style.color) + "\n";
  AddLine(text, "time", TimesText(job, now));
  if (job.pending_reason() != 0) {
    AddLine(text, "waits",
            absl::StrCat("for ", Word(job.pending_reason()), LacksText(job, now),
                         job.queue_position() > 0
                             ? absl::StrCat(", place ", job.queue_position(), " in the queue")
                             : ""));
  }
  if (job.has_predictions()) AddLine(text, "folds", FoldsText(job));
  const std::string scores = ScoresText(job.scores());
  const bool of_another = !scores.empty() && !job.models_from().empty();
  AddLine(text, "score", (of_another ? Printable(job.models_from()) + ": " : "") + scores);
  AddLine(text, "quantiles", QuantilesText(job.scores()));
  if (job.decisions().empty()) AddLine(text, "decisions", "none");
  const int decisions = job.decisions_size();
  const bool shortened = !style.verbose && decisions > kMostDecisions + 1;
  for (int i = 0; i < decisions; ++i) {
    const int left_out = decisions - kMostDecisions;
    if (shortened && i == kMostDecisions / 2) {
      AddLine(text, "", absl::StrCat("... ", left_out, " more: trainctl get --verbose"));
      i += left_out;
    }
    const v1::Decision& decision = job.decisions(i);
    AddLine(text, i == 0 ? "decisions" : "",
            ClockText(decision.at(), now) + " " + DecisionText(decision, style.verbose));
  }
  for (const std::string& warning : job.warnings()) {
    AddLine(text, "warning", Printable(warning, 400));
  }
  if (job.files_missing()) {
    AddLine(text, "files", "gone: somebody has removed the folder of the results");
  }
  if (job.has_predictions()) {
    AddLine(text, "prediction",
            absl::StrCat(Printable(job.predictions().path(), 4096), " (", job.predictions().rows(),
                         " rows)"));
  } else if (!job.program_results().empty()) {
    AddLine(text, "results",
            absl::StrCat(Printable(job.program_results(), 4096),
                         KeepsResults(job) ? " (trainctl fetch copies them)" : ""));
  } else if (job.state() == v1::JOB_STATE_SUCCEEDED) {
    AddLine(text, "prediction", "none was asked for: the spec has no data.test");
  }
  if (style.spec.has_value()) AddLine(text, "time left", TimeLeftText(job, *style.spec));
  return text;
}

std::string JobReport(const v1::Job& job, absl::Time now, const JobStyle& style) {
  std::string text = JobSummary(job, now, style);
  if (job.has_report()) AddReport(text, job.report(), style.verbose);
  AddTransfers(text, job, style.verbose);
  if (job.has_plan()) {
    const v1::Plan& plan = job.plan();
    AddLine(text, "plan",
            absl::StrFormat(
                "%d folds, %s%d epochs%s, %d rank%s a fold, %d at a time%s", plan.folds(),
                plan.models() > plan.folds() ? absl::StrCat(plan.models(), " models, ") : "",
                plan.epochs(), RowsText(plan), plan.ranks(), plan.ranks() == 1 ? "" : "s",
                plan.parallel_folds(),
                plan.has_estimate() ? ", estimate " + ShortDuration(plan.estimate()) : ""));
  }
  AddLine(text, "results", Printable(job.results_dir(), 4096));
  if (job.pinned()) AddLine(text, "pinned", "retention does not delete it");
  if (HasTrials(job)) {
    absl::StrAppend(&text, "\n", LeaderBoard(job, absl::ToDoubleSeconds(now - absl::UnixEpoch())));
  }
  if (!job.folds().empty()) absl::StrAppend(&text, "\n", FoldTable(job));
  return text;
}

}  // namespace traind
