#include "client/render_table.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>
#include <absl/strings/str_join.h>
#include <google/protobuf/duration.pb.h>
#include <google/protobuf/util/time_util.h>

#include <algorithm>
#include <map>
#include <utility>

#include "client/fold_text.h"
#include "client/job_cells.h"
#include "common/base/bytes_text.h"
#include "common/base/duration.h"
#include "common/spec/automatic_rules.h"
#include "common/spec/field_text.h"

namespace traind {

using google::protobuf::util::TimeUtil;

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

std::string ClockText(const google::protobuf::Timestamp& moment, absl::Time now,
                      absl::TimeZone zone) {
  const absl::Time time = ToTime(moment);
  const bool today = absl::ToCivilDay(time, zone) == absl::ToCivilDay(now, zone);
  return absl::FormatTime(today ? "%H:%M:%S" : "%Y-%m-%d %H:%M:%S", time, zone);
}

namespace {

std::string LabelsText(const google::protobuf::Map<std::string, std::string>& labels) {
  const std::map<std::string, std::string> sorted(labels.begin(), labels.end());
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
             job.owner(), absl::StrCat(job.priority()), LabelsText(job.labels()),
             job.results_dir()}) {
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
  const bool labels = std::any_of(workers.workers().begin(), workers.workers().end(),
                                  [](const auto& worker) { return worker.labels_size() > 0; });
  if (labels) header.push_back("LABELS");
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
      if (labels) row.push_back(LabelsText(worker.labels()));
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
