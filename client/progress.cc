#include "client/progress.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>
#include <absl/strings/str_join.h>

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "client/fold_text.h"
#include "client/render_table.h"
#include "common/base/duration.h"
#include "common/spec/field_text.h"
#include "common/spec/spec_rules.h"

namespace traind {
namespace {

constexpr int kShortestBar = 4;
constexpr int kLongestBar = 40;

std::string StateWord(const v1::Job& job) { return StateText(job.state(), false); }

// Returns "01:10", "1:02:03", or "?" if it is unknown.
std::string ClockOf(double seconds) {
  if (!std::isfinite(seconds) || seconds < 0 || seconds > 1e8) return "?";
  const int64_t s = static_cast<int64_t>(seconds);
  if (s < 3600) return absl::StrFormat("%02d:%02d", s / 60, s % 60);
  return absl::StrFormat("%d:%02d:%02d", s / 3600, s / 60 % 60, s % 60);
}

std::string RateText(double steps_per_s) {
  if (steps_per_s <= 0 || !std::isfinite(steps_per_s)) return "?it/s";
  if (steps_per_s < 1) return absl::StrFormat("%.3gs/it", 1 / steps_per_s);
  if (steps_per_s < 1000) return absl::StrFormat("%.3git/s", steps_per_s);
  return absl::StrFormat("%.0fit/s", steps_per_s);
}

std::string FoldsDone(const v1::Job& job) {
  const int extra = ExtraModels(job);
  return absl::StrCat("folds ", TrainedFolds(job), "/", CountFolds(job), " done",
                      extra > 0 ? absl::StrCat(" + ", extra, " models") : "");
}

std::string BestFold(const v1::Job& job) {
  const bool higher = HigherIsBetter(job.scores().metric());
  const v1::Fold* best = nullptr;
  for (const v1::Fold& fold : job.folds()) {
    if (!fold.has_score() || !std::isfinite(fold.score()) || fold.seed() > 0) continue;
    if (best == nullptr || (higher ? fold.score() > best->score() : fold.score() < best->score())) {
      best = &fold;
    }
  }
  if (best == nullptr || job.scores().metric().empty()) return "";
  return absl::StrFormat("best %s %s (fold %s)", Printable(job.scores().metric()),
                         ScoreText(best->score()), FoldName(*best));
}

// brief: leaves out the word "deadline" where a deadline is set.
std::string DeadlineText(const v1::Job& job, const Moment& moment, bool brief = false) {
  if (!job.has_deadline()) return "no deadline";
  const absl::Duration left = TimeLeft(job, moment);
  std::string text = left < absl::ZeroDuration()
                         ? "deadline passed"
                         : (brief ? "in " : "deadline in ") + DurationToText(left);
  switch (OutlookOf(job)) {
    case Outlook::kNone:
      break;
    case Outlook::kOnTrack:
      text += ": on track";
      break;
    case Outlook::kTight:
      text += ": tight";
      break;
    case Outlook::kLate:
      text += ": late";
      break;
  }
  return text;
}

std::string WaitText(const v1::Job& job, absl::Time now) {
  if (job.pending_reason() == v1::PENDING_REASON_UNSPECIFIED) return "";
  const auto* value = v1::PendingReason_descriptor()->FindValueByNumber(job.pending_reason());
  std::string text =
      "waits for " + (value == nullptr ? absl::StrCat(job.pending_reason()) : EnumWord(*value));
  if (!job.waits_for().empty()) absl::StrAppend(&text, " (", job.waits_for(), ")");
  if (job.queue_position() > 0) absl::StrAppend(&text, ", place ", job.queue_position());
  if (job.has_expected_start()) {
    absl::StrAppend(&text, ", expected ", ClockText(job.expected_start(), now));
  }
  return text;
}

std::string JoinParts(const std::vector<std::string>& parts) {
  std::string text;
  for (const std::string& part : parts) {
    if (!part.empty()) absl::StrAppend(&text, text.empty() ? "" : "  ", part);
  }
  return text;
}

// Returns the seconds since the fold's Attempt began, by the daemon's clock if the deadline reveals
// it; below 0: unknown.
double FoldSeconds(const v1::Job& job, const v1::Fold& fold, const Moment& moment) {
  const absl::Time daemon_now = job.has_deadline() && job.has_remaining_s()
                                    ? ToTime(job.deadline()) - TimeLeft(job, moment)
                                    : moment.now;
  for (const v1::AttemptSummary& attempt : job.attempts()) {
    if (attempt.id() != fold.attempt() || !attempt.has_started_at()) continue;
    return std::max(0.0, absl::ToDoubleSeconds(daemon_now - ToTime(attempt.started_at())));
  }
  return -1;
}

struct FoldFigures {
  double share = 0;  // fraction done, 0-1
  std::string progress;
  std::string steps;
  std::string times;
  std::string rate;
  std::string samples;
  std::string loss;
};

FoldFigures FiguresOf(const v1::Job& job, const v1::Fold& fold, const Moment& moment) {
  FoldFigures figures;
  const v1::Progress& progress = fold.progress();
  const double planned = progress.planned();
  figures.share = planned > 0 ? std::clamp(progress.done() / planned, 0.0, 1.0) : 0;
  const char* unit = progress.unit() == v1::PROGRESS_UNIT_ROUND  ? "rounds"
                     : progress.unit() == v1::PROGRESS_UNIT_STEP ? "steps"
                                                                 : "ep";
  // Epochs are rounded down: 12.4 done means that the 13th is running.
  figures.progress =
      absl::StrFormat("%.0f/%.0f %s", std::floor(progress.done() + 1e-9), planned, unit);
  if (!fold.has_live()) return figures;
  const v1::LiveFigures& live = fold.live();
  const double share = job.plan().row_share() > 0 ? job.plan().row_share() : 1;
  const double steps =
      planned * std::ceil(share * static_cast<double>(live.steps_per_epoch()) - 1e-9);
  if (steps > 0 && progress.unit() != v1::PROGRESS_UNIT_STEP) {
    figures.steps = absl::StrFormat("%d/%.0f", live.step(), steps);
  }
  const double left_s =
      steps > 0 && live.steps_per_s() > 0
          ? std::max(0.0, steps - static_cast<double>(live.step())) / live.steps_per_s()
          : -1;
  figures.times = absl::StrCat(ClockOf(FoldSeconds(job, fold, moment)), "<", ClockOf(left_s));
  figures.rate = RateText(live.steps_per_s());
  if (live.samples_per_s() > 0) {
    figures.samples =
        absl::StrFormat("%.*f samples/s", live.samples_per_s() < 10 ? 1 : 0, live.samples_per_s());
  }
  if (live.step() > 0 && live.loss() != 0)
    figures.loss = absl::StrCat("loss ", absl::StrFormat("%.3g", live.loss()));
  return figures;
}

// Returns the text to the right of the bar; detail 4 is everything, 0 only the epochs.
std::string RightOfBar(const FoldFigures& f, int detail) {
  std::vector<std::string> parts = {f.progress};
  if (detail >= 3) parts.push_back(f.steps);
  std::string text = JoinParts(parts);
  std::vector<std::string> bracket;
  if (detail >= 2 && !f.times.empty()) bracket = {f.times, f.rate};
  if (detail >= 4 && !f.samples.empty()) bracket.push_back(f.samples);
  if (!bracket.empty()) absl::StrAppend(&text, " [", absl::StrJoin(bracket, ", "), "]");
  if (detail >= 1 && !f.loss.empty()) absl::StrAppend(&text, " ", f.loss);
  return text;
}

std::vector<const v1::Fold*> RunningFolds(const v1::Job& job) {
  std::vector<const v1::Fold*> running;
  for (const v1::Fold& fold : job.folds()) {
    if (fold.state() == v1::TASK_STATE_RUNNING) running.push_back(&fold);
  }
  return running;
}

}  // namespace

Outlook OutlookOf(const v1::Job& job) {
  if (!job.has_deadline() || !job.has_estimated_finish()) return Outlook::kNone;
  const absl::Duration slack = ToTime(job.deadline()) - ToTime(job.estimated_finish());
  const absl::Duration window = ToTime(job.deadline()) - ClockStart(job);
  if (slack < absl::ZeroDuration()) return Outlook::kLate;
  return slack < window / 10 ? Outlook::kTight : Outlook::kOnTrack;
}

absl::Duration TimeLeft(const v1::Job& job, const Moment& moment) {
  return job.has_remaining_s() ? absl::Seconds(job.remaining_s()) - moment.since_seen
                               : ToTime(job.deadline()) - moment.now;
}

std::string Shorten(absl::string_view text, int width) {
  if (width <= 0 || DisplayWidth(text) <= width) return std::string(text);
  const int keep = std::max(0, width - 2);
  std::string kept;
  int taken = 0;
  for (char c : text) {
    const bool starts = (static_cast<unsigned char>(c) & 0xC0) != 0x80;
    if (starts && ++taken > keep) break;
    kept += c;
  }
  return kept + std::string(std::min(2, width), '.');
}

std::string JobLine(const v1::Job& job, const Moment& moment, int width) {
  const std::string head = absl::StrCat(Printable(job.id()), " ", StateWord(job));
  const std::string folds = job.folds().empty() ? "" : FoldsDone(job);
  const std::string deadline = DeadlineText(job, moment);
  std::string fit;
  if (job.has_plan() && job.has_deadline() && job.folds_size() > 0) {
    fit = absl::StrCat(", ", job.plan().folds(), "/", CountFolds(job), " folds fit");
  }
  const std::string wait = WaitText(job, moment.now);
  const std::vector<std::string> candidates = {
      JoinParts({head, wait, folds, BestFold(job), deadline + fit}),
      JoinParts({head, wait, folds, BestFold(job), deadline}),
      JoinParts({head, wait, folds, deadline}), JoinParts({head, deadline}),
      JoinParts({head, DeadlineText(job, moment, true)})};
  if (width <= 0) return candidates[0];
  for (const std::string& line : candidates) {
    if (DisplayWidth(line) <= width) return line;
  }
  return Shorten(candidates.back(), width);
}

std::string FoldLine(const v1::Job& job, const v1::Fold& fold, const Moment& moment, int width) {
  const FoldFigures figures = FiguresOf(job, fold, moment);
  const std::string left =
      absl::StrFormat("fold %s %3.0f%%|", FoldName(fold), std::floor(figures.share * 100));
  // The bar gets the remaining space; details are dropped before it gets too short.
  for (int detail = 4; detail >= 0; --detail) {
    const std::string right = RightOfBar(figures, detail);
    const int room = width - DisplayWidth(left) - DisplayWidth(right) - 2;
    if (room < (detail > 0 ? 10 : kShortestBar)) continue;
    // The length changes in steps, so that the bar stands still while a number beside it gets a
    // digit more.
    const int bar = std::min(room >= 10 ? room / 5 * 5 : room, kLongestBar);
    const int full = static_cast<int>(std::floor(figures.share * bar + 1e-9));
    return absl::StrCat(left, std::string(full, '#'), std::string(bar - full, '.'), "| ", right);
  }
  return Shorten(absl::StrCat(left, " ", figures.progress), width);
}

std::vector<std::string> ProgressLines(const v1::Job& job, const Moment& moment, int width,
                                       int rows) {
  std::vector<std::string> lines = {JobLine(job, moment, width)};
  const std::vector<const v1::Fold*> running = RunningFolds(job);
  for (size_t i = 0; i < running.size(); ++i) {
    if (static_cast<int>(i) >= rows - 1 && i + 1 < running.size()) {
      lines.push_back(Shorten(absl::StrCat("and ", running.size() - i, " folds more"), width));
      break;
    }
    lines.push_back(FoldLine(job, *running[i], moment, width));
  }
  return lines;
}

std::string PlainLine(const v1::Job& job, const Moment& moment) {
  std::vector<std::string> parts = {JobLine(job, moment, 0)};
  for (const v1::Fold* fold : RunningFolds(job)) {
    parts.push_back(
        absl::StrCat("fold ", FoldName(*fold), " ", RightOfBar(FiguresOf(job, *fold, moment), 4)));
  }
  return absl::StrJoin(parts, "; ");
}

std::string MilestoneKey(const v1::Job& job) {
  std::string key = absl::StrCat(job.state());
  for (const v1::Fold& fold : job.folds()) absl::StrAppend(&key, "/", fold.state());
  return key;
}

}  // namespace traind
