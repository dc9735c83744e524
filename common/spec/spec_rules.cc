#include "common/spec/spec_rules.h"

#include <absl/algorithm/container.h>
#include <absl/strings/ascii.h>
#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>
#include <absl/strings/str_join.h>
#include <absl/strings/str_split.h>
#include <absl/strings/strip.h>
#include <google/protobuf/util/json_util.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <optional>
#include <utility>

#include "common/base/bytes_text.h"
#include "common/base/labels.h"
#include "common/job_rules/task_rules.h"
#include "common/metrics/metrics.h"
#include "common/spec/automatic_rules.h"
#include "common/spec/command_rules.h"
#include "common/spec/field_checker.h"
#include "common/spec/field_text.h"
#include "common/spec/media_rules.h"
#include "common/spec/named_json.h"
#include "common/spec/presets.h"
#include "common/spec/pretrained_rules.h"
#include "common/spec/search_rules.h"

namespace traind {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

constexpr int kMostLabels = 32;
constexpr size_t kLongestGpuName = 100;
constexpr int kMostAfter = 100;
constexpr int kMostHiddenLayers = 64;

// ---- Defaults ----------------------------------------------------------------

void SetDefault(const FieldDescriptor& field, absl::string_view text, Message& message) {
  std::vector<absl::string_view> items = {text};
  if (field.is_repeated()) {
    // "[256, 256]"
    absl::ConsumePrefix(&text, "[");
    absl::ConsumeSuffix(&text, "]");
    items = absl::StrSplit(text, ',', absl::SkipWhitespace());
  }
  for (absl::string_view item : items) {
    ScalarText scalar;
    scalar.text = absl::StripAsciiWhitespace(item);
    // A test proves every default; it cannot fail on input.
    SetFieldFromText(field, scalar, message).IgnoreError();
  }
}

}  // namespace

void FillDefaults(Message& message) {
  const Descriptor& type = *message.GetDescriptor();
  const Reflection& access = *message.GetReflection();
  for (int i = 0; i < type.field_count(); ++i) {
    const FieldDescriptor& field = *type.field(i);
    if (IsScalarField(field)) {
      if (!IsSet(message, field) && !RulesOf(field).default_().empty()) {
        SetDefault(field, RulesOf(field).default_(), message);
      }
      continue;
    }
    // Members of a oneof only where they were chosen.
    const bool optional = field.real_containing_oneof() != nullptr;
    if (!field.is_repeated() && (!optional || access.HasField(message, &field))) {
      FillDefaults(*access.MutableMessage(&message, &field));
    }
  }
}

namespace {

// ---- Rules of several fields -------------------------------------------------

std::vector<std::string> MetricsOf(absl::string_view task_type) {
  std::vector<std::string> names;
  for (const Metric metric : MetricsFor(task_type)) names.emplace_back(MetricName(metric));
  return names;
}

const v1::FieldRules& RulesOfTaskType() {
  return RulesOf(*v1::TaskSpec::descriptor()->FindFieldByName("type"));
}

void CheckAfter(const v1::JobSpec& spec, FieldChecker& check) {
  if (spec.after().jobs_size() > kMostAfter) {
    check.Add("after.jobs", absl::StrCat("names ", spec.after().jobs_size(), " jobs; ", kMostAfter,
                                         " are the most"));
  }
}

void CheckLabels(const google::protobuf::Map<std::string, std::string>& labels,
                 const std::string& field, int most, FieldChecker& check) {
  if (static_cast<int>(labels.size()) > most) {
    check.Add(field, absl::StrCat("has ", labels.size(), " labels; ", most, " are the most"));
  }
  const std::map<std::string, std::string> sorted(labels.begin(), labels.end());
  for (const auto& [key, value] : sorted) {
    const std::string wrong = LabelMistake(key, value);
    if (!wrong.empty()) check.Add(absl::StrCat(field, ".", Printable(key)), wrong);
  }
}

// What is asked of GPUs is not asked of cores.
void CheckResources(const v1::ResourceSpec& resources, FieldChecker& check) {
  CheckLabels(resources.labels(), "resources.labels", kMostWorkerLabels, check);
  const std::string& gpu = resources.gpu();
  const std::string& memory = resources.gpu_memory();
  if (gpu.size() > kLongestGpuName) {
    check.Add("resources.gpu", absl::StrCat("has more than ", kLongestGpuName, " characters"));
  }
  if (!memory.empty() && !ParseBytes(memory)) {
    check.Add("resources.gpu_memory",
              absl::StrCat("'", Printable(memory), "' is no size: 40GiB, 80GB"));
  }
  if (resources.device() != "cpu") return;
  if (!gpu.empty()) check.Add("resources.gpu", "is of GPUs, but resources.device is cpu");
  if (!memory.empty()) check.Add("resources.gpu_memory", "is of GPUs, but resources.device is cpu");
}

// A column can be one thing only.
void CheckRoles(const v1::DataSpec& data, FieldChecker& check) {
  std::map<std::string, std::string> role_of;
  if (!data.target().empty()) role_of[data.target()] = "the target";
  for (int i = 0; i < data.targets_size(); ++i) {
    if (!role_of.emplace(data.targets(i), "the target").second) {
      check.Add(absl::StrCat("data.target[", i, "]"),
                absl::StrCat("'", Printable(data.targets(i)), "' is there twice"));
    }
  }
  for (const auto& [field, column] :
       {std::make_pair("id", data.id()), std::make_pair("time", data.time()),
        std::make_pair("series", data.series()), std::make_pair("group", data.group()),
        std::make_pair("fold_column", data.fold_column())}) {
    const auto known = role_of.find(column);
    if (column.empty() || known == role_of.end()) continue;
    check.Add(absl::StrCat("data.", field),
              absl::StrCat("'", Printable(column), "' is ", known->second, ", too"));
  }
  if (!data.time().empty() && data.time() == data.series()) {
    check.Add("data.series", absl::StrCat("'", Printable(data.series()), "' is the time, too"));
  }
}

void CheckData(const v1::JobSpec& spec, const std::string& type, FieldChecker& check) {
  const v1::DataSpec& data = spec.data();
  if (spec.has_data() && data.target().empty() && data.targets_size() == 0 && !check.partial() &&
      !data.has_volume()) {
    check.Add("data.target", "is missing");
  }
  if (!data.target().empty() && data.targets_size() > 0) {
    check.Add("data.targets", "and data.target are both set; choose one");
  }
  if (data.targets_size() > 1 && type == "classification") {
    check.Add("data.target", "is a list; a classification has one target");
  }
  CheckRoles(data, check);
  const auto need = [&](absl::string_view split, const std::string& column, const char* field) {
    if (data.split() == split && column.empty()) {
      check.Add("data.split", absl::StrCat("'", split, "' needs data.", field));
    }
  };
  need("grouped", data.group(), "group");
  need("forward", data.time(), "time");
  need("column", data.fold_column(), "fold_column");
  const bool forecasting = type == "forecasting";
  if (forecasting && data.time().empty()) {
    check.Add("data.time", "is missing: forecasting needs the column that orders rows");
  }
  if (!data.series().empty() && data.time().empty()) {
    check.Add("data.series", "needs data.time");
  }
  if (!forecasting && (data.has_window() || data.has_horizon())) {
    check.Add(data.has_window() ? "data.window" : "data.horizon",
              "is of task.type forecasting only");
  }
  if (!forecasting && data.rolling()) check.Add("data.rolling", "is of task.type forecasting only");
  if (data.rolling() && data.has_horizon() && data.horizon() == 0) {
    check.Add("data.rolling", "needs a data.horizon of 1 or more: with 0 no past target is used");
  }
}

void CheckLoss(const v1::JobSpec& spec, const std::string& type, FieldChecker& check) {
  const v1::TrainSpec& train = spec.train();
  const std::string& loss = train.loss().kind();
  const int classes = spec.data().volume().classes_size();
  const std::vector<std::string> fitting = LossesOf(type, classes);
  if (!loss.empty() && !absl::c_linear_search(fitting, loss)) {
    const bool of_other_number = absl::c_linear_search(LossesOf(type, classes > 1 ? 1 : 2), loss);
    if (!of_other_number) {
      check.Add("train.loss.kind", absl::StrCat("'", loss, "' does not fit ", type));
    } else if (!check.partial()) {
      check.Add("train.loss.kind",
                absl::StrCat("'", loss, "' is of another number of data.volume.classes; use ",
                             fitting[0]));
    }
  }
  // The kind may stand in the spec that a partial one goes on from.
  const bool open = check.partial() && loss.empty();
  if (train.loss().has_quantile() && loss != "quantile" && !open) {
    check.Add("train.loss.quantile", "is of train.loss.kind quantile only");
  }
  if (train.loss().has_tweedie_power() && loss != "tweedie" && !open) {
    check.Add("train.loss.tweedie_power", "is of train.loss.kind tweedie only");
  }
  const bool balanced = train.loss().class_weights() == "balanced";
  for (const Contradiction& wrong : LossContradictions(
           type, balanced, train.loss().weights_size() > 0, train.loss().label_smoothing())) {
    check.Add(wrong.field, wrong.why);
  }
  if (const auto wrong = TransformContradiction(type, loss, train.target_transform())) {
    check.Add(wrong->field, wrong->why);
  }
}

void CheckTrain(const v1::JobSpec& spec, const std::string& type, FieldChecker& check) {
  const v1::TrainSpec& train = spec.train();
  if (!type.empty()) CheckLoss(spec, type, check);
  const v1::OptimizerSpec& optimizer = train.optimizer();
  const auto momentum =
      optimizer.has_momentum() ? std::make_optional(optimizer.momentum()) : std::nullopt;
  if (optimizer.nesterov() && !MayBeNesterov(optimizer.kind(), momentum)) {
    check.Add("train.optimizer.nesterov", "needs kind sgd with a momentum above 0");
  }
  const v1::ScheduleSpec& schedule = train.schedule();
  if (const auto wrong = WarmUpContradiction(
          schedule.has_warmup_steps(), schedule.has_warmup_epochs(), schedule.has_warmup_share())) {
    check.Add(wrong->field, wrong->why);
  }
  if (train.shorten_sequences() &&
      (type != "forecasting" || !IsSequential(NetworkName(spec.model())))) {
    check.Add("train.shorten_sequences", "needs task.type forecasting and a model with steps");
  }
  if (train.collective() == "nccl" && spec.resources().device() == "cpu") {
    check.Add("train.collective", "'nccl' needs resources.device cuda");
  }
  if ((train.collective() == "shm" || train.collective() == "gloo") &&
      spec.resources().device() == "cuda") {
    check.Add("train.collective",
              absl::StrCat("'", train.collective(), "' needs resources.device cpu"));
  }
}

// A program of a user needs little time to predict, but some to end: a tenth of the window, at
// least a second and a half and at most a minute. The rest is the program's.
void FillRunShares(v1::BudgetSpec& budget) {
  constexpr double kShare = 0.1, kMostShare = 0.3, kLeastSeconds = 1.5, kMostSeconds = 60;
  const double window_s = static_cast<double>(budget.time().seconds());
  const double held_s =
      window_s > 0 ? std::clamp(kShare * window_s, kLeastSeconds, kMostSeconds) : kMostSeconds;
  if (!budget.has_reserve_share()) {
    budget.set_reserve_share(window_s > 0 ? std::min(kMostShare, held_s / window_s) : kShare);
  }
  // The time that one program needed to end tells little about the next one.
  if (!budget.has_reserve_least()) {
    budget.mutable_reserve_least()->set_seconds(static_cast<int64_t>(std::ceil(held_s)));
  }
  const double rest = std::max(0.05, 1 - budget.reserve_share());
  if (budget.plan_share() == 0) budget.set_plan_share(rest);
  if (budget.stop_share() == 0) budget.set_stop_share(rest);
}

// Shares of one window, which have to leave room for each other.
void CheckBudget(const v1::JobSpec& spec, FieldChecker& check) {
  v1::BudgetSpec budget = spec.budget();
  if (spec.has_run() || spec.model().has_command()) FillRunShares(budget);
  FillDefaults(budget);
  const auto together = [&](absl::string_view field, double share, absl::string_view what) {
    // Sums of decimal fractions are not exact.
    if (share + budget.reserve_share() <= 1 + 1e-9 || share > 1) return;
    check.Add(absl::StrCat("budget.", field),
              absl::StrCat("'", share, "' and budget.reserve_share '", budget.reserve_share(),
                           "' sum to more than 1: ", what));
  };
  together("plan_share", budget.plan_share(), "the plan would fill what is held back");
  together("stop_share", budget.stop_share(), "training would stop within what is held back");
  if (budget.first_fold_share() > budget.plan_share()) {
    check.Add("budget.first_fold_share",
              absl::StrCat("'", budget.first_fold_share(), "' is above budget.plan_share, ",
                           budget.plan_share()));
  }
}

// The network's numbers that have to be multiples of another one, also of its default.
void CheckMultiples(const v1::JobSpec& spec, FieldChecker& check) {
  const std::string network = NetworkName(spec.model());
  if (network.empty()) return;
  const FieldDescriptor& chosen = *v1::ModelSpec::descriptor()->FindFieldByName(network);
  for (int i = 0; i < chosen.message_type()->field_count(); ++i) {
    const FieldDescriptor& field = *chosen.message_type()->field(i);
    const std::string& beside = RulesOf(field).multiple_of();
    if (beside.empty()) continue;
    v1::JobSpec filled = spec;
    ApplyPreset(filled);
    FillDefaults(*filled.mutable_model());
    const Message& settings = filled.model().GetReflection()->GetMessage(filled.model(), &chosen);
    const Reflection& access = *settings.GetReflection();
    const int value = access.GetInt32(settings, &field);
    const int divisor = access.GetInt32(settings, chosen.message_type()->FindFieldByName(beside));
    if (value % divisor == 0) continue;
    const std::string path = absl::StrCat("model.", network, ".");
    check.Add(path + field.name(),
              absl::StrCat("'", value, "' is no multiple of ", divisor, ", ", path, beside));
  }
}

// A Job that trains nothing takes these fields from the Job whose models it uses.
void CheckBorrowed(const v1::JobSpec& spec, FieldChecker& check) {
  for (const auto& [field, set] :
       {std::make_pair("task", spec.has_task()), std::make_pair("data", spec.has_data()),
        std::make_pair("model", spec.has_model()),
        std::make_pair("resources", spec.has_resources()),
        std::make_pair("from", !spec.from().empty()),
        std::make_pair("preset", !spec.preset().empty()),
        std::make_pair("search", spec.has_search()),
        std::make_pair("predictions.ensemble", !spec.predictions().ensemble().empty()),
        std::make_pair("predictions.quantiles", spec.predictions().quantiles_size() > 0)}) {
    if (set) check.Add(field, "is that of the Job whose models are used; leave it out");
  }
  if (spec.has_after()) {
    check.Add("after", "is not for a Job that uses the models that another one has at its submit");
  }
}

// A Job that runs a program learns from no data of traind's and has no model of its own.
void CheckRun(const v1::JobSpec& spec, FieldChecker& check) {
  for (const auto& [field, set] :
       {std::make_pair("task", spec.has_task()), std::make_pair("data", spec.has_data()),
        std::make_pair("model", spec.has_model()), std::make_pair("from", !spec.from().empty()),
        std::make_pair("preset", !spec.preset().empty()),
        std::make_pair("search", spec.has_search()),
        std::make_pair("predictions", spec.has_predictions())}) {
    if (set) check.Add(field, "has no meaning for a program (run); leave it out");
  }
  CheckRunProgram(spec,
                  [&](const std::string& path, const std::string& what) { check.Add(path, what); });
  CheckBudget(spec, check);
}

void CheckTogether(const v1::JobSpec& spec, FieldChecker& check) {
  if (!spec.name().empty() && !IsJobName(spec.name())) {
    check.Add("name", absl::StrCat("'", Printable(spec.name()),
                                   "' is no name: letters, digits, - _ and ., at most 63, the "
                                   "first a letter or digit"));
  }
  CheckLabels(spec.labels(), "labels", kMostLabels, check);
  CheckResources(spec.resources(), check);
  CheckAfter(spec, check);
  if (UsesModelsOfAnother(spec)) return CheckBorrowed(spec, check);
  if (spec.has_run()) return CheckRun(spec, check);
  // A partial spec may leave fields out: they stand in the other spec.
  const std::string type = check.partial() ? spec.task().type() : TypeOfSpec(spec).type;
  const std::string& metric = spec.task().metric();
  const std::vector<std::string> fitting = MetricsOf(type);
  const bool known_type = !type.empty() && CheckWord(RulesOfTaskType(), type).ok();
  if (known_type && MetricByName(metric).ok() && !absl::c_linear_search(fitting, metric)) {
    check.Add("task.metric", absl::StrCat("'", metric, "' does not fit ", type, "; use ",
                                          absl::StrJoin(fitting, ", ")));
  }
  const absl::StatusOr<Metric> of_level = MetricByName(metric);
  const std::string& loss = spec.train().loss().kind();
  if (of_level.ok() && HasLevel(*of_level) && loss != "quantile" &&
      !(check.partial() && loss.empty())) {
    check.Add("task.metric", absl::StrCat("'", metric, "' needs train.loss.kind quantile"));
  }
  CheckData(spec, type, check);
  if (spec.model().mlp().hidden_size() > kMostHiddenLayers) {
    check.Add("model.mlp.hidden", absl::StrCat("has ", spec.model().mlp().hidden_size(),
                                               " layers; ", kMostHiddenLayers, " are the most"));
  }
  CheckTrain(spec, type, check);
  const auto add = [&](const std::string& path, const std::string& what) { check.Add(path, what); };
  CheckAutomatic(spec, type, add);
  CheckSearch(spec, type, add);
  CheckMedia(spec, check.partial(), add);
  CheckMultiples(spec, check);
  CheckPretrained(spec.model(), add);
  if (!check.partial()) CheckFineTuning(spec, add);
  CheckQuantiles(spec.predictions(), type, add);
  if (!check.partial()) CheckKnownAhead(spec, type, add);
  if (spec.model().has_command()) {
    v1::TrainSpec usual;
    FillDefaults(usual);
    CheckCommand(spec, type, usual, add);
  }
  CheckBudget(spec, check);
  if (spec.budget().subsample() && spec.train().has_shuffle() && !spec.train().shuffle()) {
    check.Add("budget.subsample",
              "needs train.shuffle: a part of the rows is the first of them in a drawn order");
  }
  if (!spec.from().empty() && !spec.preset().empty()) {
    check.Add("preset", "has nothing to fill: all is as in the job that `from` names");
  }
  if (spec.train().precision() == "tf32" && spec.resources().device() == "cpu") {
    check.Add("train.precision", "'tf32' needs resources.device cuda");
  }
}

}  // namespace

std::vector<SpecError> CheckSpec(const v1::JobSpec& spec) {
  FieldChecker check(/*partial=*/!spec.from().empty());
  check.CheckMessage(spec, "");
  CheckTogether(spec, check);
  return std::move(check.errors);
}

bool IsJobName(absl::string_view name) { return IsNameText(name, 63, "-_."); }

bool UsesModelsOfAnother(const v1::JobSpec& spec) { return spec.has_predict() || spec.has_serve(); }

v1::JobSpec ResolveSpec(v1::JobSpec spec) {
  if (UsesModelsOfAnother(spec)) {
    const v1::PredictionsSpec wanted = spec.predictions();
    FillDefaults(spec);
    *spec.mutable_predictions() = wanted;
    spec.clear_task();
    spec.clear_data();
    spec.clear_model();
    spec.clear_resources();
    return spec;
  }
  const v1::ResourceSpec& asked = spec.resources();
  const bool of_gpus = !asked.gpu().empty() || !asked.gpu_memory().empty();
  if (of_gpus && asked.device().empty()) spec.mutable_resources()->set_device("cuda");
  if (spec.has_run()) {
    FillRunShares(*spec.mutable_budget());
    FillDefaults(spec);
    spec.clear_task();
    spec.clear_data();
    spec.clear_model();
    spec.clear_predictions();
    return spec;
  }
  spec.mutable_task()->set_type(TypeOfSpec(spec).type);
  ApplyPreset(spec);
  if (spec.task().type() == "forecasting") {
    if (!spec.data().has_window()) spec.mutable_data()->set_window(kDefaultWindow);
    if (!spec.data().has_horizon()) spec.mutable_data()->set_horizon(kDefaultHorizon);
  }
  if (spec.task().metric().empty()) {
    spec.mutable_task()->set_metric(DefaultMetric(spec.task().type(), spec.train().loss().kind()));
  }
  ChooseModel(spec);
  FillArchitecture(*spec.mutable_model());
  if (spec.model().has_command()) FillRunShares(*spec.mutable_budget());
  const bool several =
      spec.model().has_automatic() || spec.has_search() || spec.model().command().beside_size() > 0;
  if (several && spec.predictions().ensemble().empty()) {
    spec.mutable_predictions()->set_ensemble("greedy");
  }
  if (spec.has_search()) ResolveSearch(spec);
  if (spec.kind_case() == v1::JobSpec::KIND_NOT_SET) spec.mutable_train();
  if (spec.data().has_volume() && spec.has_train()) spec.mutable_train()->mutable_patches();
  // Reading the defaults' text takes longer than all else, so it is done once for what nearly every
  // spec has.
  const bool usual = spec.model().has_mlp() || spec.model().has_automatic();
  if (!usual || !spec.has_train()) {
    FillDefaults(spec);
    return spec;
  }
  static const v1::JobSpec& defaults = *[] {
    auto* made = new v1::JobSpec();
    made->mutable_train();
    FillDefaults(*made);
    return made;
  }();
  v1::JobSpec resolved = defaults;
  MergeSpec(spec, resolved);
  FillDefaults(*resolved.mutable_model());
  if (resolved.has_search()) FillDefaults(*resolved.mutable_search());
  if (resolved.has_after()) FillDefaults(*resolved.mutable_after());
  return resolved;
}

namespace {

// Clears the Durations and Timestamps of `under` that `over` has.
void ClearTimes(const Message& over, Message& under) {
  std::vector<const FieldDescriptor*> fields;
  over.GetReflection()->ListFields(over, &fields);
  for (const FieldDescriptor* field : fields) {
    if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE || field->is_repeated()) continue;
    const Reflection& access = *under.GetReflection();
    if (!access.HasField(under, field)) continue;
    if (field->message_type()->file()->package() == "google.protobuf") {
      access.ClearField(&under, field);
    } else {
      ClearTimes(over.GetReflection()->GetMessage(over, field),
                 *access.MutableMessage(&under, field));
    }
  }
}

}  // namespace

void MergeSpec(const v1::JobSpec& over, v1::JobSpec& under) {
  ClearTimes(over, under);
  under.MergeFrom(over);
}

absl::StatusOr<v1::JobSpec> SpecFromJson(absl::string_view json) {
  v1::JobSpec spec;
  const auto status = google::protobuf::util::JsonStringToMessage(std::string(json), &spec, {});
  if (!status.ok()) {
    return absl::InvalidArgumentError(absl::StrCat("spec JSON: ", status.message().ToString()));
  }
  return spec;
}

bool HigherIsBetter(absl::string_view metric) {
  const absl::StatusOr<Metric> known = MetricByName(metric);
  return known.ok() && HigherIsBetter(*known);
}

std::string MetricOfJob(const v1::JobSpec& spec) {
  const std::string& name = spec.task().metric();
  const absl::StatusOr<Metric> metric = MetricByName(name);
  if (!metric.ok() || !HasLevel(*metric)) return name;
  const v1::LossSpec& loss = spec.train().loss();
  const double level = loss.has_quantile() ? loss.quantile() : kDefaultQuantile;
  return std::string(MetricName(AtLevel(*metric, level)));
}

std::string DefaultMetric(absl::string_view task_type, absl::string_view loss_kind) {
  return std::string(MetricName(DefaultMetricOf(task_type, loss_kind)));
}

}  // namespace traind
