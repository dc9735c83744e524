#include "client/render_table.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>
#include <absl/strings/str_join.h>
#include <google/protobuf/duration.pb.h>
#include <google/protobuf/util/time_util.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "client/fold_text.h"
#include "client/time_left.h"
#include "client/trials.h"
#include "common/base/bytes_text.h"
#include "common/base/duration.h"
#include "common/job_rules/program_rules.h"
#include "common/spec/automatic_rules.h"
#include "common/spec/field_text.h"

namespace traind {
namespace {

// A Job that tries many settings has hundreds; the first and the last of them are shown.
constexpr int kMostDecisions = 8;

using google::protobuf::util::TimeUtil;

template <typename Enum>
std::string Word(Enum value) {
  const auto* found = google::protobuf::GetEnumDescriptor<Enum>()->FindValueByNumber(value);
  if (found == nullptr) return absl::StrCat(static_cast<int>(value));
  return value == 0 ? "" : EnumWord(*found);
}

std::string ShortDuration(const google::protobuf::Duration& duration) {
  return DurationToText(absl::Seconds(duration.seconds()) + absl::Nanoseconds(duration.nanos()));
}

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

// Whether its time began later than at its acceptance.
bool Waited(const v1::Job& job) { return ClockStart(job) != ToTime(job.accepted_at()); }

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

void AddLine(std::string& text, absl::string_view name, absl::string_view value) {
  if (!value.empty()) absl::StrAppendFormat(&text, "  %-11s %s\n", name, value);
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

}  // namespace

int DisplayWidth(absl::string_view text) {
  return static_cast<int>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

void TextTable::Add(const std::vector<std::string>& cells) {
  std::vector<std::string>& row = rows_.emplace_back();
  row.reserve(cells.size());
  if (widths_.size() < cells.size()) widths_.resize(cells.size());
  for (size_t c = 0; c < cells.size(); ++c) {
    row.push_back(cells[c].empty() ? "-" : Printable(cells[c], 200));
    widths_[c] = std::max(widths_[c], DisplayWidth(row.back()));
  }
}

std::string TextTable::ToString() const {
  std::string text;
  for (const auto& row : rows_) {
    for (size_t c = 0; c < row.size(); ++c) {
      text += row[c];
      if (c + 1 < row.size()) text.append(widths_[c] + 2 - DisplayWidth(row[c]), ' ');
    }
    text += '\n';
  }
  return text;
}

std::string StateText(v1::JobState state, bool color) {
  const std::string word = Word(state);
  const char* code = state == v1::JOB_STATE_SUCCEEDED   ? "32"
                     : state == v1::JOB_STATE_FAILED    ? "31"
                     : state == v1::JOB_STATE_CANCELLED ? "33"
                                                        : "36";
  return color ? absl::StrCat("\x1b[", code, "m", word, "\x1b[0m") : word;
}

std::string ScoreText(double score) { return absl::StrFormat("%.4g", score); }

absl::Time ClockStart(const v1::Job& job) {
  return ToTime(job.has_runnable_at() ? job.runnable_at() : job.accepted_at());
}

absl::Time ToTime(const google::protobuf::Timestamp& moment) {
  return absl::FromUnixSeconds(moment.seconds()) + absl::Nanoseconds(moment.nanos());
}

namespace {

// Returns in few words why a rule of the budget (docs/DESIGN.md) changes a Plan; empty: its name or
// the change says it.
absl::string_view ReasonOf(absl::string_view rule) {
  struct Reason {
    absl::string_view rule, words;
  };
  constexpr Reason kReasons[] = {
      {"B2", "to fit the time"},          {"B3", "by the time of the first fold"},
      {"B4", "to leave time to predict"}, {"B5", "because the time is nearly over"},
      {"B6", "because it got no better"}, {"B7", "so that the answer gets no worse"},
      {"B9", "because time is left"},     {"B13", "after a failure"},
  };
  for (const Reason& reason : kReasons) {
    if (reason.rule == rule) return reason.words;
  }
  return "";
}

bool HasNoArithmetic(absl::string_view cause) {
  return !cause.empty() && cause.find_first_of("=;:(") == absl::string_view::npos;
}

// Returns a cause up to its arithmetic, which stands in brackets.
std::string FirstClause(absl::string_view cause) {
  return Printable(cause.substr(0, cause.find(" (")), 160);
}

}  // namespace

std::string ClockText(const google::protobuf::Timestamp& moment, absl::Time now,
                      absl::TimeZone zone) {
  const absl::Time time = ToTime(moment);
  const bool today = absl::ToCivilDay(time, zone) == absl::ToCivilDay(now, zone);
  return absl::FormatTime(today ? "%H:%M:%S" : "%Y-%m-%d %H:%M:%S", time, zone);
}

std::string DecisionText(const v1::Decision& decision, bool verbose) {
  std::string text = Printable(decision.rule(), 64) + ": ";
  const bool change = !decision.from().empty() || !decision.to().empty();
  if (!change) {
    text += verbose ? Printable(decision.cause(), 400) : FirstClause(decision.cause());
  } else {
    absl::StrAppend(&text, Printable(decision.from(), 200), " -> ", Printable(decision.to(), 200));
    if (!verbose) {
      // B9 gives time back where there is some, and takes it where it is of no use.
      if (decision.rule() == "B9" && HasNoArithmetic(decision.cause())) {
        return absl::StrCat(text, ", because ", Printable(decision.cause(), 160));
      }
      const absl::string_view why = ReasonOf(decision.rule());
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

std::string JobLine(const v1::Job& job, bool color) {
  std::string text = absl::StrCat(Printable(job.id()), " ", StateText(job.state(), color));
  if (job.quality() != 0) absl::StrAppend(&text, "  quality ", Word(job.quality()));
  if (job.end_reason() != 0) absl::StrAppend(&text, "  ", Word(job.end_reason()));
  if (!job.end_message().empty()) absl::StrAppend(&text, ": ", Printable(job.end_message(), 1000));
  return text;
}

namespace {

// ": 4 GPUs on one host; 2 free; expected 12:40:00".
std::string LacksText(const v1::Job& job, absl::Time now) {
  std::string text;
  if (!job.waits_for().empty()) absl::StrAppend(&text, ": ", Printable(job.waits_for()));
  if (job.has_expected_start()) {
    absl::StrAppend(&text, "; expected ", ClockText(job.expected_start(), now));
  }
  return text;
}

}  // namespace

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
    AddLine(text, "results", Printable(job.program_results(), 4096));
  } else if (job.state() == v1::JOB_STATE_SUCCEEDED) {
    AddLine(text, "prediction", "none was asked for: the spec has no data.test");
  }
  if (style.spec.has_value()) AddLine(text, "time left", TimeLeftText(job, *style.spec));
  return text;
}

namespace {

std::string Seconds(double seconds) {
  return DurationToText(absl::Trunc(absl::Seconds(seconds), absl::Milliseconds(1)));
}

std::string Epochs(double epochs) {
  return absl::StrFormat(epochs < 1000 ? "%.3g" : "%.0f", epochs);
}

// Returns the share of the rows that an epoch uses, if it is not all.
std::string RowsText(const v1::Plan& plan) {
  if (plan.row_share() <= 0 || plan.row_share() >= 1) return "";
  return absl::StrFormat(" of %.0f %% of the rows", 100 * plan.row_share());
}

// What training took of the machine: "utilisation 93 %, memory 130.2 MiB; an epoch: 0.12s of a
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

std::string JobReport(const v1::Job& job, absl::Time now, const JobStyle& style) {
  std::string text = JobSummary(job, now, style);
  if (job.has_report()) AddReport(text, job.report(), style.verbose);
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

namespace {

std::string LabelsText(const v1::Job& job) {
  const std::map<std::string, std::string> sorted(job.labels().begin(), job.labels().end());
  return absl::StrJoin(sorted, ",", absl::PairFormatter("="));
}

std::string WhyText(const v1::Job& job, absl::Time now, bool wide) {
  return job.files_missing()     ? Word(job.end_reason()) + ", files gone"
         : job.end_reason() != 0 ? Word(job.end_reason())
         : job.pending_reason() != 0
             ? "waits for " + Word(job.pending_reason()) + (wide ? LacksText(job, now) : "")
             : "";
}

}  // namespace

namespace {

std::vector<std::string> JobHeader(bool wide) {
  std::vector<std::string> header = {"JOB",   "STATE",    "QUALITY",  "FOLDS",
                                     "SCORE", "DEADLINE", "ACCEPTED", "REASON"};
  if (wide) {
    for (const char* more :
         {"FINISHED", "TOOK", "NAME", "OWNER", "PRIORITY", "LABELS", "RESULTS"}) {
      header.push_back(more);
    }
  }
  return header;
}

}  // namespace

JobTable::JobTable(absl::Time now, bool wide) : now_(now), wide_(wide), table_(JobHeader(wide)) {}

void JobTable::Add(const v1::Job& job) {
  const bool has_score = job.scores().has_oof();
  std::vector<std::string> row = {
      job.id(),
      Word(job.state()),
      Word(job.quality()),
      absl::StrCat(TrainedFolds(job), "/", CountFolds(job)),
      has_score ? absl::StrCat(job.scores().metric(), " ", ScoreText(job.scores().oof()),
                               job.scores().comparable() ? "" : " (not comparable)")
                : "",
      job.has_deadline() ? ClockText(job.deadline(), now_) : "",
      ClockText(job.accepted_at(), now_),
      WhyText(job, now_, wide_)};
  if (wide_) {
    const bool over = job.has_finished_at();
    for (std::string& cell : std::vector<std::string>{
             over ? ClockText(job.finished_at(), now_) : "",
             over ? DurationToText(ToTime(job.finished_at()) - ClockStart(job)) : "", job.name(),
             job.owner(), absl::StrCat(job.priority()), LabelsText(job), job.results_dir()}) {
      row.push_back(std::move(cell));
    }
  }
  table_.Add(row);
}

std::string QuotaTable(const v1::ListQuotasReply& quotas, absl::Time now) {
  TextTable table({"WHO", "ALLOWANCE", "PERIOD", "USED", "LEFT", "FREE AT"});
  for (const v1::QuotaState& state : quotas.quotas()) {
    const v1::Quota& quota = state.quota();
    const double allowance_s = TimeUtil::DurationToMilliseconds(quota.allowance()) / 1000.0;
    table.Add({quota.subject().label().empty() ? quota.subject().owner() : quota.subject().label(),
               ShortDuration(quota.allowance()),
               ShortDuration(quota.period()) + (quota.rolling() ? "" : ", fixed"),
               absl::StrCat(DurationToText(absl::Seconds(state.used_s())),
                            allowance_s > 0
                                ? absl::StrFormat(" (%.0f %%)", 100 * state.used_s() / allowance_s)
                                : ""),
               DurationToText(absl::Seconds(state.left_s())),
               state.has_free_at() ? ClockText(state.free_at(), now) : ""});
  }
  return table.ToString();
}

namespace {

std::string ModeText(const v1::WorkerInfo& worker, absl::Time now) {
  switch (worker.mode()) {
    case v1::WORKER_MODE_CORDONED:
      return ", cordoned";
    case v1::WORKER_MODE_DRAINING:
      if (worker.attempts() == 0) return ", drained";
      return ToTime(worker.drain_at()) > now ? ", drains at " + ClockText(worker.drain_at(), now)
                                             : ", draining";
    case v1::WORKER_MODE_LEAVING:
      return ", leaving";
    default:
      return "";
  }
}

}  // namespace

namespace {

// "72 %, 3 GiB, 250 W, 61 C".
std::string FiguresText(const v1::DeviceFigures& figures) {
  std::vector<std::string> parts;
  if (figures.has_utilisation()) {
    parts.push_back(absl::StrFormat("%.0f %%", 100 * figures.utilisation()));
  }
  if (figures.has_memory_bytes()) parts.push_back(BytesText(figures.memory_bytes()));
  if (figures.has_power_watts()) parts.push_back(absl::StrFormat("%.0f W", figures.power_watts()));
  if (figures.has_temperature_celsius()) {
    parts.push_back(absl::StrFormat("%.0f C", figures.temperature_celsius()));
  }
  return absl::StrJoin(parts, ", ");
}

}  // namespace

std::string WorkerTable(const v1::ListWorkersReply& workers, absl::Time now, bool wide) {
  std::vector<std::string> header = {"WORKER", "HOST", "CONNECTED", "SLOT",
                                     "DEVICE", "NAME", "MEMORY",    "RUNS"};
  if (wide) {
    for (const char* more : {"NOW", "UUID", "PID", "VERSION", "WARM RANKS"}) header.push_back(more);
  }
  TextTable table(header);
  for (const v1::WorkerInfo& worker : workers.workers()) {
    const std::string connected =
        (worker.connected()       ? "yes"
         : worker.has_last_seen() ? "no, since " + ClockText(worker.last_seen(), now)
                                  : "no") +
        ModeText(worker, now);
    std::vector<v1::SlotInfo> slots(worker.slots().begin(), worker.slots().end());
    if (slots.empty()) slots.emplace_back();
    for (const v1::SlotInfo& slot : slots) {
      const bool any = !worker.slots().empty();
      std::vector<std::string> row = {
          worker.id(),
          worker.hostname(),
          connected,
          any ? absl::StrCat(slot.index()) : "",
          slot.device(),
          slot.name(),
          slot.memory_bytes() > 0
              ? absl::StrFormat("%.3g GiB", static_cast<double>(slot.memory_bytes()) / (1 << 30))
              : "",
          !any                 ? ""
          : slot.job().empty() ? "idle"
                               : slot.job() + " " + slot.task()};
      if (wide) {
        row.push_back(FiguresText(slot.figures()));
        row.push_back(slot.uuid());
        row.push_back(absl::StrCat(worker.pid()));
        row.push_back(worker.version());
        row.push_back(absl::StrCat(worker.warm_ranks()));
      }
      table.Add(row);
    }
  }
  return table.ToString();
}

namespace {

// Returns when a Job of the spec that is accepted now has to be done; InfiniteFuture: at no time.
absl::Time DeadlineOf(const v1::BudgetSpec& budget, absl::Time now) {
  absl::Time deadline = absl::InfiniteFuture();
  if (budget.has_deadline()) deadline = ToTime(budget.deadline());
  if (budget.has_time()) {
    const absl::Duration time = absl::Nanoseconds(TimeUtil::DurationToNanoseconds(budget.time()));
    deadline = std::min(deadline, now + time);
  }
  return deadline;
}

// The estimate is that of the first trial; the others use the time that it leaves.
std::string WouldEndText(const v1::PlanReply& reply, absl::Time now) {
  const v1::JobSpec& spec = reply.resolved();
  const std::string first = ClockText(reply.estimated_finish(), now);
  if (!spec.model().has_automatic() && !spec.has_search()) return first;
  const std::string all = absl::StrCat("the first models at ", first, "; further ones are tried ");
  const absl::Time deadline = DeadlineOf(spec.budget(), now);
  if (deadline == absl::InfiniteFuture()) return all + "after them";
  return absl::StrCat(all, "until ",
                      ClockText(TimeUtil::NanosecondsToTimestamp(absl::ToUnixNanos(deadline)), now),
                      " at the latest");
}

}  // namespace

std::string PlanReport(const v1::PlanReply& reply, absl::Time now) {
  const v1::Plan& plan = reply.plan();
  const v1::JobSpec& spec = reply.resolved();
  std::string text = absl::StrFormat("%s: %d of %d folds, %d of %d epochs%s\n",
                                     Printable(spec.name()), plan.folds(), spec.data().folds(),
                                     plan.epochs(), EpochsAsked(spec), RowsText(plan));
  if (!spec.preset().empty()) {
    AddLine(text, "preset",
            absl::StrCat(Printable(spec.preset()), reply.preset_fields().empty() ? "" : " fills ",
                         absl::StrJoin(reply.preset_fields(), ", ")));
  }
  AddLine(text, "ranks",
          absl::StrFormat("%d a fold, %d fold%s at a time", plan.ranks(), plan.parallel_folds(),
                          plan.parallel_folds() == 1 ? "" : "s"));
  if (reply.has_estimate_p50()) {
    std::string estimate = ShortDuration(reply.estimate_p50());
    if (reply.has_estimate_p90()) {
      absl::StrAppend(&estimate, ", 9 times in 10 under ", ShortDuration(reply.estimate_p90()));
    }
    if (!reply.basis().empty())
      absl::StrAppend(&estimate, " (", Printable(reply.basis(), 200), ")");
    AddLine(text, "estimate", estimate);
  }
  if (plan.has_reserve()) {
    AddLine(text, "reserve", ShortDuration(plan.reserve()) + " for prediction");
  }
  if (reply.has_estimated_finish()) {
    AddLine(text, "would end", WouldEndText(reply, now));
  }
  AddLine(text, "slot time",
          absl::StrCat(Seconds(reply.device_s_p50()), ", 9 times in 10 under ",
                       Seconds(reply.device_s_p90())));
  for (const std::string& quota : reply.quotas()) AddLine(text, "quota", Printable(quota, 200));
  if (reply.has_full_budget()) {
    AddLine(text, "no cuts",
            absl::StrCat("with a budget of ", ShortDuration(reply.full_budget()), " or more"));
  }
  if (reply.has_earliest_deadline()) {
    AddLine(text, "earliest",
            absl::StrCat("deadline that a first prediction can meet: ",
                         ClockText(reply.earliest_deadline(), now)));
  }
  AddLine(text, "data", absl::StrCat(reply.train_bytes(), " bytes of training data"));
  for (const v1::Decision& cut : reply.cuts()) AddLine(text, "cut", DecisionText(cut, true));
  for (const std::string& warning : reply.warnings()) {
    AddLine(text, "warning", Printable(warning, 400));
  }
  return text;
}

}  // namespace traind
