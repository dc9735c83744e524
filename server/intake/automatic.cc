#include "server/intake/automatic.h"

#include <absl/algorithm/container.h>
#include <absl/strings/str_cat.h>

#include <cmath>
#include <memory>
#include <utility>

#include "common/base/status_macros.h"
#include "common/data/table/number.h"
#include "common/spec/automatic_rules.h"
#include "common/spec/spec_rules.h"
#include "server/intake/column_sample.h"
#include "server/intake/mistakes.h"
#include "server/portfolio/portfolio.h"

namespace traind {
namespace {

absl::Status At(const char* field, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(field, ": ", what));
}

std::string TargetOf(const v1::DataSpec& data) {
  return data.target().empty() && data.targets_size() > 0 ? data.targets(0) : data.target();
}

absl::StatusOr<ColumnSample> SampleTarget(const DataFiles& files, const DataFile& train,
                                          const std::string& target) {
  ASSIGN_OR_RETURN(const TableStart start, files.ReadTableStart(train.path));
  return SampleColumn(start.text, start.name, target);
}

absl::StatusOr<TypeChoice> TypeOfData(DataFiles& files, const v1::DataSpec& data) {
  const auto train = files.Look(data.train(), /*folders=*/data.has_image());
  if (!train.ok()) {
    Mistakes mistakes;
    mistakes.AddFile("data.train", train.status());
    return mistakes.ToStatus();
  }
  if ((*train)->folder) return TypeChoice{"classification", "each folder of images is a class"};
  if ((*train)->arrays || data.image().has_labels()) {
    return At("task.type", "is missing; it is told by the target of a CSV file alone");
  }
  const std::string target = TargetOf(data);
  if (!absl::c_linear_search((*train)->header, target)) {
    return At("data.target", MissingColumn("training", target, (*train)->header));
  }
  const auto sample = SampleTarget(files, **train, target);
  if (!sample.ok()) return At("data.train", sample.status().message());
  const auto choice = TypeOfTarget(target, *sample);
  if (!choice.ok()) return At("task.type", choice.status().message());
  return *choice;
}

// The first trial is the program, of which the Plan is about; the others are those of
// model.automatic with the kinds that the program names.
std::vector<v1::TrialSpec> ProgramAndPortfolio(const v1::JobSpec& resolved,
                                               const v1::TrainSpec& asked, const TableHint& table) {
  v1::TrialSpec program;
  program.set_name("command");
  *program.mutable_model() = resolved.model();
  v1::JobSpec others = resolved;
  *others.mutable_model()->mutable_automatic()->mutable_kinds() =
      program.model().command().beside();
  FillDefaults(*others.mutable_model()->mutable_automatic());
  std::vector<v1::TrialSpec> trials = MakePortfolio(others, asked, table);
  trials.insert(trials.begin(), std::move(program));
  return trials;
}

}  // namespace

absl::Status FillTaskType(DataFiles& files, v1::JobSpec& spec, std::vector<std::string>* warnings) {
  TypeChoice choice = TypeOfSpec(spec);
  if (choice.type.empty()) {
    ASSIGN_OR_RETURN(choice, TypeOfData(files, spec.data()));
  }
  if (choice.because.empty()) return absl::OkStatus();
  const std::string metric =
      spec.task().metric().empty() ? DefaultMetric(choice.type, spec.train().loss().kind()) : "";
  spec.mutable_task()->set_type(choice.type);
  warnings->push_back(absl::StrCat("task.type: ", choice.type, ", because ", choice.because,
                                   metric.empty() ? "" : absl::StrCat("; task.metric: ", metric)));
  return absl::OkStatus();
}

void FillText(DataFiles& files, v1::JobSpec& spec, std::vector<std::string>* warnings) {
  // Beside other columns texts must be long: a name or a title is rather one feature of many.
  constexpr size_t kOtherColumns = 3;
  constexpr double kWordsAlone = 3, kWordsBeside = 20;
  const v1::DataSpec& data = spec.data();
  const bool plain = data.media_case() == v1::DataSpec::MEDIA_NOT_SET && !data.has_time() &&
                     !data.has_series() && !data.has_text_features() && data.targets_size() == 0;
  const bool open = !spec.has_model() && !spec.has_search() && spec.from().empty();
  const std::string& type = spec.task().type();
  if (!plain || !open || (type != "classification" && type != "regression")) return;
  const auto train = files.Look(data.train(), /*folders=*/false);
  if (!train.ok() || (*train)->folder || (*train)->arrays) return;
  std::vector<std::string> columns;
  for (const std::string& name : (*train)->header) {
    const bool role = name == data.target() || name == data.id() || name == data.group() ||
                      name == data.fold_column();
    if (!role) columns.push_back(name);
  }
  if (columns.empty() || columns.size() > kOtherColumns + 1) return;
  const auto start = files.ReadTableStart((*train)->path);
  if (!start.ok()) return;
  std::string found;
  for (const std::string& column : columns) {
    const auto sample = SampleColumn(start->text, start->name, column);
    if (!sample.ok()) return;
    if (!HoldsTexts(*sample, columns.size() == 1 ? kWordsAlone : kWordsBeside)) continue;
    spec.mutable_data()->mutable_text()->add_columns(column);
    absl::StrAppend(&found, found.empty() ? "" : ", ", "'", column, "' (",
                    std::lround(sample->words), " words a row)");
  }
  if (found.empty()) return;
  warnings->push_back(absl::StrCat("data.text.columns: ", found,
                                   ", because the table holds long texts and little else; with "
                                   "`model: auto` their numbers and frequent words are features"));
}

absl::Status CheckTargetNumbers(const DataFiles& files, const DataFile& train,
                                const v1::JobSpec& spec) {
  const std::string& type = spec.task().type();
  if ((type != "regression" && type != "forecasting") || train.arrays || train.folder) {
    return absl::OkStatus();
  }
  std::vector<std::string> targets(spec.data().targets().begin(), spec.data().targets().end());
  if (!spec.data().target().empty()) targets.push_back(spec.data().target());
  for (const std::string& target : targets) {
    const auto sample = SampleTarget(files, train, target);
    float value = 0;
    if (!sample.ok() || sample->text.empty() ||
        ParseNumber(sample->text, value) != NumberKind::kText) {
      continue;
    }
    return At("data.target",
              absl::StrCat("'", target, "' has values that are no numbers, such as '", sample->text,
                           "', which a ", type, " needs"));
  }
  return absl::OkStatus();
}

namespace {

// 0: not known, as series have lags of columns, too.
int FeaturesOf(const DataFile& train, const v1::JobSpec& spec) {
  const v1::DataSpec& data = spec.data();
  if (train.arrays || train.folder || spec.task().type() == "forecasting") return 0;
  return static_cast<int>(absl::c_count_if(train.header, [&](const std::string& name) {
    return name != data.target() && !absl::c_linear_search(data.targets(), name) &&
           name != data.id() && name != data.group() && name != data.fold_column();
  }));
}

}  // namespace

void FillTrials(const DataFiles& files, const DataFile& train, const v1::JobSpec& asked,
                v1::JobSpec& resolved) {
  const bool beside = resolved.model().command().beside_size() > 0;
  if (!resolved.model().has_automatic() && !beside) return resolved.clear_trials();
  TableHint table;
  table.features = FeaturesOf(train, resolved);
  if (!train.arrays && !train.folder) {
    const auto sample = SampleTarget(files, train, TargetOf(resolved.data()));
    if (sample.ok() && sample->bytes_per_row > 0) {
      table.rows = static_cast<double>(train.bytes) / sample->bytes_per_row;
    }
    if (sample.ok() && resolved.task().type() == "classification") {
      table.classes = static_cast<int>(sample->distinct);
    }
    table.counts = sample.ok() && LooksLikeCounts(*sample);
    table.skewed = sample.ok() && IsSkewed(*sample);
    table.positive = sample.ok() && sample->least > 0;
  }
  std::vector<v1::TrialSpec> trials = beside ? ProgramAndPortfolio(resolved, asked.train(), table)
                                             : MakePortfolio(resolved, asked.train(), table);
  // A Job that goes on from another one keeps that one's settings, by whose numbers models are
  // known.
  if (asked.from().empty()) resolved.clear_trials();
  for (size_t i = static_cast<size_t>(resolved.trials_size()); i < trials.size(); ++i) {
    *resolved.add_trials() = std::move(trials[i]);
  }
}

}  // namespace traind
