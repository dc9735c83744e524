#include "client/trials.h"

#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>
#include <absl/strings/str_join.h>

#include <algorithm>
#include <map>
#include <set>

#include "client/fold_text.h"
#include "client/render_table.h"
#include "common/spec/field_text.h"
#include "common/spec/spec_rules.h"
#include "common/wire/render_json.h"

namespace traind {
namespace {

constexpr int kFloor = -1;

double SecondsOf(const google::protobuf::Timestamp& moment) {
  return static_cast<double>(moment.seconds()) + 1e-9 * moment.nanos();
}

void CountState(const v1::Fold& fold, TrialLine& line) {
  switch (fold.state()) {
    case v1::TASK_STATE_DONE:
      ++line.done;
      break;
    case v1::TASK_STATE_PARTIAL:
      ++line.partial;
      break;
    case v1::TASK_STATE_RUNNING:
      ++line.running;
      break;
    case v1::TASK_STATE_FAILED:
      ++line.failed;
      break;
    case v1::TASK_STATE_DROPPED:
      ++line.dropped;
      break;
    default:
      ++line.pending;
  }
}

// The seconds of the Attempts of each task.
std::map<std::string, double> SecondsByTask(const v1::Job& job, double now_s) {
  std::map<std::string, double> seconds;
  for (const v1::AttemptSummary& attempt : job.attempts()) {
    if (!attempt.has_started_at()) continue;
    const double end = attempt.has_ended_at() ? SecondsOf(attempt.ended_at()) : now_s;
    seconds[attempt.task()] += std::max(0.0, end - SecondsOf(attempt.started_at()));
  }
  return seconds;
}

void AddFolds(const v1::Job& job, double now_s, std::map<int, TrialLine>& lines) {
  std::map<int, std::pair<double, int>> scores;  // by trial: sum and count
  const std::map<std::string, double> seconds = SecondsByTask(job, now_s);
  for (const v1::Fold& fold : job.folds()) {
    TrialLine& line = lines[fold.trial()];
    const auto spent = seconds.find(TaskOfFold(fold));
    if (spent != seconds.end()) line.seconds += spent->second;
    if (fold.seed() > 0) continue;
    CountState(fold, line);
    if (!fold.has_score() || !IsTrained(fold)) continue;
    scores[fold.trial()].first += fold.score();
    ++scores[fold.trial()].second;
  }
  for (const auto& [trial, sum] : scores) lines[trial].score = sum.first / sum.second;
}

void AddMembers(const v1::Job& job, std::map<int, TrialLine>& lines) {
  for (const v1::PredictionMember& member : job.predictions().members()) {
    TrialLine& line = lines[member.fold() < 0 ? kFloor : member.trial()];
    line.weight += member.weight();
    if (line.kind.empty()) line.kind = member.kind();
  }
}

std::string NumberText(const TrialLine& line) {
  return line.trial == kFloor ? "" : absl::StrCat(line.trial);
}

std::string FoldsText(const TrialLine& line) {
  std::vector<std::string> parts;
  const auto add = [&parts](int count, const char* state) {
    if (count > 0) parts.push_back(absl::StrCat(count, " ", state));
  };
  add(line.done, "done");
  add(line.partial, "partial");
  add(line.running, "running");
  add(line.pending, "pending");
  add(line.failed, "failed");
  add(line.dropped, "dropped");
  return absl::StrJoin(parts, ", ");
}

std::string SettingsText(const TrialLine& line) {
  if (line.settings == nullptr) return "";
  const std::map<std::string, std::string> sorted(line.settings->settings().begin(),
                                                  line.settings->settings().end());
  return absl::StrJoin(sorted, " ", absl::PairFormatter("="));
}

bool HasBegun(const TrialLine& line) {
  return line.done + line.partial + line.running + line.failed > 0 || line.weight > 0;
}

std::vector<std::string> Cells(const TrialLine& line) {
  return {NumberText(line),
          line.name,
          line.kind,
          FoldsText(line),
          line.score ? ScoreText(*line.score) : "",
          line.weight > 0 ? absl::StrFormat("%.3f", line.weight) : "",
          line.seconds > 0 ? absl::StrFormat("%.1f", line.seconds) : ""};
}

const std::vector<std::string>& Heads() {
  static const auto& heads =
      *new std::vector<std::string>{"TRIAL", "NAME", "KIND", "FOLDS", "SCORE", "WEIGHT", "SECONDS"};
  return heads;
}

// A field as CSV has it: quoted where that is needed.
std::string CsvCell(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted.append(c == '"' ? 2 : 1, c);
  return quoted + "\"";
}

// A setting that reads as a number or as true or false is one in JSON, too.
std::string JsonValue(const std::string& text) {
  double number = 0;
  const bool plain =
      !text.empty() && text.find_first_not_of("+-.0123456789eE") == std::string::npos;
  if (plain && absl::SimpleAtod(text, &number)) return JsonNumber(number);
  if (text == "true" || text == "false") return text;
  return JsonString(text);
}

std::string LineJson(const TrialLine& line) {
  std::string settings;
  if (line.settings != nullptr) {
    const std::map<std::string, std::string> sorted(line.settings->settings().begin(),
                                                    line.settings->settings().end());
    for (const auto& [key, value] : sorted) {
      absl::StrAppend(&settings, settings.empty() ? "" : ", ", JsonString(key), ": ",
                      JsonValue(value));
    }
  }
  return absl::StrCat("  {\"trial\": ", line.trial, ", \"name\": ", JsonString(line.name),
                      ", \"kind\": ", line.kind.empty() ? "null" : JsonString(line.kind),
                      ",\n   \"folds\": {\"done\": ", line.done, ", \"partial\": ", line.partial,
                      ", \"running\": ", line.running, ", \"pending\": ", line.pending,
                      ", \"failed\": ", line.failed, ", \"dropped\": ", line.dropped,
                      "},\n   \"score\": ", line.score ? JsonNumber(*line.score) : "null",
                      ", \"weight\": ", JsonNumber(line.weight),
                      ", \"seconds\": ", JsonNumber(line.seconds), ",\n   \"settings\": {",
                      settings, "}}");
}

std::string SearchJson(const v1::Job& job) {
  if (!job.has_search()) return "null";
  std::vector<std::string> items;
  for (const v1::SearchParameter& parameter : job.search().parameters()) {
    items.push_back(absl::StrCat(
        "  {\"path\": ", JsonString(parameter.path()),
        ", \"range\": ", JsonString(parameter.range()), ", \"importance\": ",
        parameter.has_importance() ? JsonNumber(parameter.importance()) : "null", "}"));
  }
  return absl::StrCat("{\"method\": ", JsonString(job.search().method()), ", \"parameters\": [\n",
                      absl::StrJoin(items, ",\n"), "]}");
}

// "lightgbm-2", or by kind and number where the name is not known.
std::string NameOf(const v1::Job& job, int trial, const std::string& kind) {
  if (trial < job.trials_size()) return job.trials(trial).name();
  return absl::StrCat(kind.empty() ? "trial" : kind, " ", trial);
}

}  // namespace

bool HasTrials(const v1::Job& job) {
  return job.trials_size() > 1 ||
         std::any_of(job.folds().begin(), job.folds().end(),
                     [](const v1::Fold& fold) { return fold.trial() > 0; });
}

std::vector<TrialLine> TrialsOf(const v1::Job& job, double now_s) {
  std::map<int, TrialLine> lines;
  for (const v1::Trial& trial : job.trials()) {
    TrialLine& line = lines[trial.index()];
    line.kind = trial.kind();
    line.settings = &trial;
  }
  AddFolds(job, now_s, lines);
  AddMembers(job, lines);
  std::vector<TrialLine> list;
  for (auto& [trial, line] : lines) {
    line.trial = trial;
    line.name = trial == kFloor ? "floor" : NameOf(job, trial, line.kind);
    if (trial == kFloor && job.scores().has_floor()) line.score = job.scores().floor();
    list.push_back(std::move(line));
  }
  return list;
}

std::string LeaderBoard(const v1::Job& job, double now_s) {
  std::vector<TrialLine> lines = TrialsOf(job, now_s);
  const bool higher = HigherIsBetter(job.scores().metric());
  std::stable_sort(lines.begin(), lines.end(), [higher](const TrialLine& a, const TrialLine& b) {
    if (a.weight != b.weight) return a.weight > b.weight;
    if (a.score.has_value() != b.score.has_value()) return a.score.has_value();
    if (!a.score || *a.score == *b.score) return false;
    return higher ? *a.score > *b.score : *a.score < *b.score;
  });
  TextTable table(Heads());
  for (const TrialLine& line : lines) {
    if (HasBegun(line)) table.Add(Cells(line));
  }
  return table.ToString();
}

std::string SearchTable(const v1::Job& job) {
  if (!job.has_search()) return "";
  std::vector<v1::SearchParameter> sorted(job.search().parameters().begin(),
                                          job.search().parameters().end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const v1::SearchParameter& a, const v1::SearchParameter& b) {
                     return a.importance() > b.importance();
                   });
  TextTable table({"PARAMETER", "RANGE", "IMPORTANCE"});
  for (const v1::SearchParameter& parameter : sorted) {
    table.Add({parameter.path(), parameter.range(),
               parameter.has_importance() ? absl::StrFormat("%.2f", parameter.importance()) : ""});
  }
  return table.ToString();
}

std::string TrialTable(const v1::Job& job, double now_s) {
  std::vector<std::string> heads = Heads();
  heads.push_back("SETTINGS");
  TextTable table(heads);
  int not_begun = 0;
  for (const TrialLine& line : TrialsOf(job, now_s)) {
    if (line.trial == kFloor) continue;
    if (!HasBegun(line)) {
      ++not_begun;
      continue;
    }
    std::vector<std::string> cells = Cells(line);
    cells.push_back(SettingsText(line));
    table.Add(std::move(cells));
  }
  std::string text = table.ToString();
  if (not_begun > 0) {
    absl::StrAppend(&text, not_begun,
                    not_begun == 1 ? " further trial has" : " further trials have", " not begun\n");
  }
  return text;
}

std::string TrialCsv(const v1::Job& job, double now_s) {
  std::string text =
      "trial,name,kind,done,partial,running,pending,failed,dropped,score,weight,seconds,settings\n";
  for (const TrialLine& line : TrialsOf(job, now_s)) {
    if (line.trial == kFloor) continue;
    absl::StrAppend(&text, line.trial, ",", CsvCell(line.name), ",", line.kind, ",", line.done, ",",
                    line.partial, ",", line.running, ",", line.pending, ",");
    absl::StrAppend(&text, line.failed, ",", line.dropped, ",",
                    line.score ? JsonNumber(*line.score) : "", ",", JsonNumber(line.weight), ",",
                    JsonNumber(line.seconds), ",", CsvCell(SettingsText(line)), "\n");
  }
  return text;
}

std::string TrialJson(const v1::Job& job, double now_s) {
  std::vector<std::string> items;
  for (const TrialLine& line : TrialsOf(job, now_s)) {
    if (line.trial != kFloor) items.push_back(LineJson(line));
  }
  return absl::StrCat("{\n\"job\": ", JsonString(job.id()),
                      ",\n\"metric\": ", JsonString(job.scores().metric()),
                      ",\n\"search\": ", SearchJson(job), ",\n\"trials\": [",
                      items.empty() ? "" : "\n", absl::StrJoin(items, ",\n"), "]\n}\n");
}

std::string AnswerChange(const v1::Job& before, const v1::Job& job) {
  if (!HasTrials(job) || job.predictions().number() <= before.predictions().number()) return "";
  std::set<int> known;
  for (const v1::PredictionMember& member : before.predictions().members()) {
    known.insert(member.fold() < 0 ? kFloor : member.trial());
  }
  std::vector<std::string> joined;
  std::set<int> now;
  for (const v1::PredictionMember& member : job.predictions().members()) {
    const int trial = member.fold() < 0 ? kFloor : member.trial();
    if (trial == kFloor) continue;
    if (now.insert(trial).second && known.count(trial) == 0) {
      joined.push_back(NameOf(job, trial, member.kind()));
    }
  }
  const v1::Scores &old = before.scores(), &scores = job.scores();
  const bool comparable =
      old.has_oof() && scores.has_oof() && old.comparable() && scores.comparable();
  const bool better = comparable && (HigherIsBetter(scores.metric()) ? scores.oof() > old.oof()
                                                                     : scores.oof() < old.oof());
  if (joined.empty() && !better) return "";
  std::string text = joined.empty() ? "the answer is better"
                                    : absl::StrCat(absl::StrJoin(joined, ", "), " in the answer");
  if (scores.has_oof()) {
    absl::StrAppend(&text, ": ", scores.metric(), " ",
                    comparable ? absl::StrCat(ScoreText(old.oof()), " -> ") : "",
                    ScoreText(scores.oof()), " out of fold");
  }
  return absl::StrCat(Printable(text, 400), ", ", now.size(),
                      now.size() == 1 ? " trial" : " trials", " with a weight");
}

}  // namespace traind
