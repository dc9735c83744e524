#include "common/spec/search_rules.h"

#include <absl/algorithm/container.h>
#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>
#include <absl/strings/str_join.h>
#include <absl/strings/str_split.h>
#include <absl/strings/strip.h>

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "common/base/field_path.h"
#include "common/base/suggest.h"
#include "common/job_rules/program_rules.h"
#include "common/job_rules/task_rules.h"
#include "common/metrics/metrics.h"
#include "common/search/range.h"
#include "common/spec/field_text.h"
#include "common/spec/media_rules.h"
#include "common/spec/pretrained_rules.h"

namespace traind {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;
using Add = std::function<void(const std::string&, const std::string&)>;

// Fields of train that no model depends on, and the level of the metric that judges all trials.
constexpr absl::string_view kNoSettings[] = {
    "train.seeds",        "train.checkpoint_every", "train.checkpoint_epochs", "train.keep_best",
    "train.collective",   "train.rendezvous",       "train.gradient_norm",     "train.paths",
    "train.loss.quantile"};

// The usual spaces. LightGBM and XGBoost have those of TabArena (2025), with learning rates for
// budgets of seconds; networks have ranges like those of TabM's authors (2024).
struct Usual {
  const char* kind;
  const char* path;
  const char* range;
};
constexpr Usual kUsual[] = {
    {"lightgbm", "model.lightgbm.learning_rate", "log(0.02, 0.2)"},
    {"lightgbm", "model.lightgbm.num_leaves", "log(4, 200)"},
    {"lightgbm", "model.lightgbm.min_data_in_leaf", "log(1, 64)"},
    {"lightgbm", "model.lightgbm.feature_fraction", "uniform(0.4, 1)"},
    {"lightgbm", "model.lightgbm.bagging_fraction", "uniform(0.7, 1)"},
    {"lightgbm", "model.lightgbm.bagging_freq", "choice(0, 1)"},
    {"lightgbm", "model.lightgbm.lambda_l1", "uniform(0, 1)"},
    {"lightgbm", "model.lightgbm.lambda_l2", "uniform(0, 2)"},
    {"lightgbm", "model.lightgbm.extra_trees", "choice(false, true)"},
    {"xgboost", "model.xgboost.learning_rate", "log(0.02, 0.2)"},
    {"xgboost", "model.xgboost.max_depth", "log(3, 10)"},
    {"xgboost", "model.xgboost.min_child_weight", "log(0.001, 5)"},
    {"xgboost", "model.xgboost.subsample", "uniform(0.6, 1)"},
    {"xgboost", "model.xgboost.colsample_bylevel", "uniform(0.6, 1)"},
    {"xgboost", "model.xgboost.colsample_bynode", "uniform(0.6, 1)"},
    {"xgboost", "model.xgboost.lambda", "uniform(0, 5)"},
    {"kernel", "model.kernel.gamma", "log(0.05, 5)"},
    {"kernel", "model.kernel.alpha", "log(0.001, 10)"},
    {"mlp", "model.mlp.hidden",
     "choice([128], [128, 128], [256, 256], [512, 512], [256, 256, 256])"},
    {"mlp", "model.mlp.dropout", "uniform(0, 0.5)"},
    {"lstm", "model.lstm.hidden", "log(32, 256)"},
    {"lstm", "model.lstm.layers", "int(1, 3)"},
    {"lstm", "model.lstm.dropout", "uniform(0, 0.4)"},
    {"transformer", "model.transformer.layers", "int(1, 4)"},
    {"transformer", "model.transformer.feedforward", "log(64, 512)"},
    {"transformer", "model.transformer.dropout", "uniform(0, 0.4)"},
    {"cnn", "model.cnn.width", "choice(16, 32, 64)"},
    {"cnn", "model.cnn.dropout", "uniform(0, 0.5)"},
    {"text", "model.text.layers", "int(1, 4)"},
    {"text", "model.text.feedforward", "log(128, 1024)"},
    {"text", "model.text.dropout", "uniform(0, 0.4)"},
    {"unet3d", "model.unet3d.base", "choice(4, 8, 16)"},
    // Every network with low-rank changes has these.
    {"lora", "model.lora.rank", "choice(4, 8, 16, 32)"},
    {"lora", "model.lora.alpha", "choice(8, 16, 32, 64)"},
    // Every network has these.
    {"", "train.learning_rate", "log(0.0003, 0.01)"},
    {"", "train.weight_decay", "log(0.0001, 0.1)"},
};
// The usual optimizers learn at a tenth of the rate of sgd, a pretrained network at less, and its
// low-rank changes at ten times that.
constexpr char kRateOfSgd[] = "log(0.003, 0.1)";
constexpr char kRateOfFineTuning[] = "log(0.00001, 0.0003)";
constexpr char kRateOfLora[] = "log(0.0001, 0.003)";

constexpr absl::string_view kLora = "model.lora.";

// A grid has no more points than a search has trials.
int MostPoints() {
  return static_cast<int>(RulesOf(*v1::SearchSpec::descriptor()->FindFieldByName("trials")).max());
}

bool IsSection(const FieldDescriptor& field) {
  return !IsScalarField(field) && !field.is_repeated() && !field.is_map();
}

bool IsSetting(const FieldDescriptor& field, const std::string& path) {
  const v1::FieldRules& rules = RulesOf(field);
  if (rules.internal() || rules.path() || field.is_map()) return false;
  if (field.message_type() != nullptr) return false;
  return absl::c_none_of(kNoSettings, [&path](absl::string_view none) {
    return path == none || absl::StartsWith(path, absl::StrCat(none, "."));
  });
}

// The paths of all fields that a search may vary.
void AddPaths(const Descriptor& type, const std::string& above, std::vector<std::string>& paths) {
  for (int i = 0; i < type.field_count(); ++i) {
    const FieldDescriptor& field = *type.field(i);
    const std::string path = FieldPath(above, field.name());
    if (path == "model.automatic" || path == "model.pretrained" || path == "model.command") {
      continue;
    }
    if (IsSection(field)) {
      AddPaths(*field.message_type(), path, paths);
    } else if (IsSetting(field, path)) {
      paths.push_back(path);
    }
  }
}

const std::vector<std::string>& Paths() {
  static const auto& paths = *[] {
    auto* made = new std::vector<std::string>();
    AddPaths(*v1::ModelSpec::descriptor(), "model", *made);
    AddPaths(*v1::TrainSpec::descriptor(), "train", *made);
    return made;
  }();
  return paths;
}

// The field with this path; null: there is none that may vary.
const FieldDescriptor* FieldOf(absl::string_view path) {
  if (!absl::c_linear_search(Paths(), path)) return nullptr;
  const Descriptor* type = v1::JobSpec::descriptor();
  const FieldDescriptor* field = nullptr;
  for (const std::string& name : std::vector<std::string>(absl::StrSplit(path, '.'))) {
    field = type->FindFieldByName(name);
    type = field->message_type();
  }
  return field;
}

// "lr" of model.command.settings.lr; empty: the path is another one.
std::string SettingName(absl::string_view path) {
  return absl::ConsumePrefix(&path, kSettingPath) ? std::string(path) : std::string();
}

// A space of a program names its settings alone.
std::string WholePath(const v1::JobSpec& spec, const std::string& path) {
  return spec.model().has_command() && IsSettingName(path) ? absl::StrCat(kSettingPath, path)
                                                           : path;
}

// Its last word may be right, or nearly all of it.
std::string Suggestion(const std::string& path, const std::string& kind) {
  const std::string name = absl::StrCat(".", path.substr(path.rfind('.') + 1));
  std::string fallback;
  for (const std::string& known : Paths()) {
    if (!absl::EndsWith(known, name)) continue;
    const bool own = absl::StartsWith(known, absl::StrCat("model.", kind, "."));
    if (own || fallback.empty()) fallback = known;
    if (own) break;
  }
  if (!fallback.empty()) return absl::StrCat("; did you mean '", fallback, "'?");
  const std::string close = DidYouMean(path, Paths());
  if (!close.empty() || path.find('.') != path.npos) return close;
  // A name alone, slightly wrong.
  std::vector<std::string> names;
  for (const std::string& known : Paths()) names.push_back(known.substr(known.rfind('.') + 1));
  const std::string meant = ClosestWord(path, names);
  return meant.empty() ? "" : Suggestion(meant, kind);
}

// Empty: the field is of all networks.
std::string KindOfPath(absl::string_view path) {
  if (absl::StartsWith(path, kLora) || !absl::ConsumePrefix(&path, "model.")) return "";
  return std::string(path.substr(0, path.find('.')));
}

bool IsNumber(const FieldDescriptor& field) {
  return field.cpp_type() == FieldDescriptor::CPPTYPE_INT32 ||
         field.cpp_type() == FieldDescriptor::CPPTYPE_DOUBLE;
}

// The range of a field: whole numbers where the field has such.
absl::StatusOr<Range> RangeOf(const FieldDescriptor& field, const std::string& text) {
  absl::StatusOr<Range> range = ParseRange(text);
  if (!range.ok() || range->kind == Range::kChoice) return range;
  if (!IsNumber(field)) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", Printable(text), "' is of numbers; list the values of this field"));
  }
  if (field.cpp_type() != FieldDescriptor::CPPTYPE_INT32 || range->count > 0) return range;
  if (range->kind == Range::kUniform) range->kind = Range::kInt;
  if (range->kind == Range::kLog) range->kind = Range::kLogInt;
  return ParseRange(Text(*range));
}

absl::StatusOr<Range> RangeAt(const std::string& path, const std::string& text) {
  return SettingName(path).empty() ? RangeOf(*FieldOf(path), text) : ParseRange(text);
}

// Every value of a choice, or the ends of a range.
std::vector<std::string> ValuesToCheck(const Range& range) {
  if (range.kind == Range::kChoice) return range.choices;
  if (range.count > 0) return {ValueOf(range, 0), ValueOf(range, range.count - 1)};
  const Axis axis = AxisOf(range);
  return {ValueAt(range, axis.low), ValueAt(range, axis.high)};
}

void CheckRange(const std::string& path, const std::string& text, bool grid, const Add& add) {
  const std::string place = absl::StrCat("search.space.", path);
  const absl::StatusOr<Range> range = RangeAt(path, text);
  if (!range.ok()) return add(place, std::string(range.status().message()));
  for (const std::string& value : ValuesToCheck(*range)) {
    v1::JobSpec scratch;
    const absl::Status status = SetSearched(path, value, scratch);
    if (!status.ok()) return add(place, std::string(status.message()));
  }
  if (grid && ValueCount(*range) > MostPoints()) {
    add(place, absl::StrCat("'", Text(*range), "' has too many values for a grid of at most ",
                            MostPoints(), " points; name some in a list, or give steps, as in ",
                            "uniform(0, 1, 0.1) or log(1, 100, 3)"));
  }
}

// kind: of the model.
void CheckKinds(const std::string& path, const std::string& kind, const Add& add) {
  const std::string own = KindOfPath(path);
  const std::string place = absl::StrCat("search.space.", path);
  if (!own.empty() && own != kind) {
    add(place, absl::StrCat("is of model.", own, ", but the model is ", kind));
  }
  if (own.empty() && kind == kCommandKind) {
    add(place, "is of networks; a program has its own settings, such as {lr}");
  } else if (own.empty() && IsTrees(kind) && !absl::StartsWith(path, "train.loss.") &&
             path != "train.target_transform") {
    add(place, absl::StrCat("is of networks; model.", kind, " has settings of its own"));
  }
}

void CheckSpace(const v1::JobSpec& spec, const Add& add) {
  const v1::SearchSpec& search = spec.search();
  const bool grid = search.method() == "grid";
  const std::map<std::string, std::string> space(search.space().begin(), search.space().end());
  std::string kind = NetworkName(spec.model());
  if (kind.empty()) kind = KindOfSpace(search);
  bool right = true;
  double points = 1;
  for (const auto& [name, text] : space) {
    const auto note = [&](const std::string& place, const std::string& what) {
      right = false;
      add(place, what);
    };
    const std::string path = WholePath(spec, name);
    if (!SettingName(path).empty()) {
      CheckKinds(path, kind, note);
    } else if (FieldOf(path) == nullptr) {
      note(absl::StrCat("search.space.", Printable(path)),
           absl::StrCat("is no field below model or train that a search may vary",
                        Suggestion(Printable(path), kind)));
      continue;
    } else {
      CheckKinds(path, kind, note);
    }
    if (IsFixedByArchitecture(spec.model(), path)) {
      note(absl::StrCat("search.space.", path),
           absl::StrCat("is fixed by architecture: ", ArchitectureOf(spec.model())));
    }
    if (absl::StartsWith(path, kLora) && !spec.model().has_lora()) {
      note(absl::StrCat("search.space.", path),
           "needs model.lora in the spec, whose rank and alpha are those of the first trial; "
           "model.lora: {} has the defaults");
    }
    CheckRange(path, text, grid, note);
    if (right) points *= ValueCount(*RangeAt(path, text));
  }
  if (right && grid && points > MostPoints()) {
    add("search.space", absl::StrCat("has ", absl::StrFormat("%.6g", points),
                                     " points, but a grid has at most ", MostPoints()));
  }
  if (kind == kCommandKind && space.empty()) {
    add("search.space", "is missing: it names the program's settings, such as {lr}, with ranges");
  } else if (grid && space.empty() && spec.from().empty()) {
    add("search.space", "is missing: a grid needs lists of values, or ranges with steps");
  }
}

// Sets a list from the text of one: "[256, 256]".
absl::Status SetField(const FieldDescriptor& field, absl::string_view value, Message& message) {
  std::vector<absl::string_view> items = {value};
  if (field.is_repeated()) {
    absl::ConsumePrefix(&value, "[");
    absl::ConsumeSuffix(&value, "]");
    items = absl::StrSplit(value, ',', absl::SkipWhitespace());
    message.GetReflection()->ClearField(&message, &field);
  }
  for (absl::string_view item : items) {
    ScalarText scalar;
    scalar.text = absl::StripAsciiWhitespace(item);
    const absl::Status status = SetFieldFromText(field, scalar, message);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

// The section that a path's field is in; null: the spec has none.
const Message* SectionOf(absl::string_view path, const Message& spec) {
  const Message* message = &spec;
  const std::vector<std::string> names = absl::StrSplit(path, '.');
  for (size_t i = 0; i + 1 < names.size(); ++i) {
    const FieldDescriptor* const field = message->GetDescriptor()->FindFieldByName(names[i]);
    if (field->real_containing_oneof() != nullptr &&
        !message->GetReflection()->HasField(*message, field)) {
      return nullptr;
    }
    message = &message->GetReflection()->GetMessage(*message, field);
  }
  return message;
}

bool IsSetIn(const v1::JobSpec& spec, const std::string& path) {
  const Message* const section = SectionOf(path, spec);
  return section != nullptr && IsSet(*section, *FieldOf(path));
}

// index: of a repeated field's element, else -1.
std::string ValueText(const Message& message, const FieldDescriptor& field, int index) {
  const Reflection& access = *message.GetReflection();
  const bool one = index < 0;
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      return absl::StrCat(one ? access.GetInt32(message, &field)
                              : access.GetRepeatedInt32(message, &field, index));
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return absl::StrFormat("%.12g", one ? access.GetDouble(message, &field)
                                          : access.GetRepeatedDouble(message, &field, index));
    case FieldDescriptor::CPPTYPE_BOOL:
      return access.GetBool(message, &field) ? "true" : "false";
    case FieldDescriptor::CPPTYPE_STRING:
      return one ? access.GetString(message, &field)
                 : access.GetRepeatedString(message, &field, index);
    default:
      return "";
  }
}

// A value as SearchedValue writes it: 0.001 where 1e-3 stood.
std::string UsualText(const std::string& path, const std::string& value) {
  v1::JobSpec scratch;
  if (value == "auto" || !SetSearched(path, value, scratch).ok()) return value;
  return SearchedValue(path, scratch);
}

// The first trial has a value in the middle, or the first one of a list, where the spec gives none.
void FillSetting(const std::string& name, const Range& range, v1::JobSpec& spec) {
  if (name.empty() || spec.model().command().settings().count(name) > 0) return;
  const Axis axis = AxisOf(range);
  const double middle = axis.choices > 0 ? 0 : (axis.low + axis.high) / 2;
  (*spec.mutable_model()->mutable_command()->mutable_settings())[name] = ValueAt(range, middle);
}

std::string UsualRate(const v1::JobSpec& spec, const char* otherwise) {
  if (spec.train().optimizer().kind() == "sgd") return kRateOfSgd;
  if (spec.model().has_lora()) return kRateOfLora;
  return spec.model().pretrained().folder().empty() ? otherwise : kRateOfFineTuning;
}

std::map<std::string, std::string> UsualSpace(const std::string& kind, const v1::JobSpec& spec) {
  std::map<std::string, std::string> all, unset;
  if (kind == kCommandKind) return all;
  for (const Usual& usual : kUsual) {
    const std::string of = usual.kind;
    if (of == "lora" ? !spec.model().has_lora() : of.empty() ? IsTrees(kind) : of != kind) continue;
    if (IsFixedByArchitecture(spec.model(), usual.path)) continue;
    const bool rate = std::string(usual.path) == "train.learning_rate";
    all[usual.path] = rate ? UsualRate(spec, usual.range) : usual.range;
    if (!IsSetIn(spec, usual.path)) unset[usual.path] = all[usual.path];
  }
  return unset.empty() ? all : unset;
}

}  // namespace

void CheckSearch(const v1::JobSpec& spec, const std::string& type, const Add& add) {
  if (!spec.has_search()) return;
  if (!spec.budget().has_time() && !spec.budget().has_deadline()) {
    add("search", "needs budget.time or budget.deadline: the clock decides how many trials run");
  }
  if (spec.model().has_automatic()) {
    add("search",
        "varies one kind of model, but `model: auto` tries several; name one, such as lightgbm");
  }
  if (spec.train().seeds() > 1) {
    add("train.seeds", "is not of a search, which tries other settings instead");
  }
  const std::string& metric = spec.task().metric();
  const std::string own =
      metric.empty() && !type.empty()
          ? std::string(MetricName(DefaultMetricOf(type, spec.train().loss().kind())))
          : metric;
  const std::string& asked = spec.search().metric();
  if (!asked.empty() && !own.empty() && asked != own) {
    add("search.metric", absl::StrCat("'", Printable(asked), "' is not the Job's metric, ", own,
                                      "; set task.metric"));
  } else if (const auto known = MetricByName(Printable(asked)); !asked.empty() && !known.ok()) {
    add("search.metric", std::string(known.status().message()));
  }
  CheckSpace(spec, add);
}

std::string KindOfSpace(const v1::SearchSpec& search) {
  const std::map<std::string, std::string> space(search.space().begin(), search.space().end());
  for (const auto& [path, text] : space) {
    const std::string kind = KindOfPath(path);
    const bool known = FieldOf(path) != nullptr || !SettingName(path).empty();
    if (!kind.empty() && known) return kind;
  }
  return "";
}

void ResolveSearch(v1::JobSpec& spec) {
  v1::SearchSpec& search = *spec.mutable_search();
  if (search.space().empty()) {
    for (const auto& [path, range] : UsualSpace(NetworkName(spec.model()), spec)) {
      (*search.mutable_space())[path] = range;
    }
  }
  const std::map<std::string, std::string> named(search.space().begin(), search.space().end());
  search.clear_space();
  for (const auto& [name, text] : named) {
    (*search.mutable_space())[WholePath(spec, name)] = text;
  }
  double points = 1;
  for (auto& [path, text] : *search.mutable_space()) {
    if (FieldOf(path) == nullptr && SettingName(path).empty()) continue;
    absl::StatusOr<Range> range = RangeAt(path, text);
    if (!range.ok()) continue;  // CheckSearch tells of it
    FillSetting(SettingName(path), *range, spec);
    for (std::string& choice : range->choices) choice = UsualText(path, choice);
    text = Text(*range);
    points *= ValueCount(*range);
  }
  if (search.method() == "grid" && search.trials() == 0 && points <= MostPoints()) {
    search.set_trials(std::max(2, static_cast<int>(points)));
  }
}

absl::Status SetSearched(absl::string_view path, absl::string_view value, v1::JobSpec& spec) {
  if (const std::string setting = SettingName(path); !setting.empty()) {
    (*spec.mutable_model()->mutable_command()->mutable_settings())[setting] = std::string(value);
    return absl::OkStatus();
  }
  const FieldDescriptor* const field = FieldOf(path);
  if (field == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", path, "' is no field that a search may vary"));
  }
  Message* message = &spec;
  const std::vector<std::string> names = absl::StrSplit(path, '.');
  for (size_t i = 0; i + 1 < names.size(); ++i) {
    message = message->GetReflection()->MutableMessage(
        message, message->GetDescriptor()->FindFieldByName(names[i]));
  }
  return SetField(*field, value, *message);
}

std::string SearchedValue(absl::string_view path, const v1::JobSpec& spec) {
  if (const std::string setting = SettingName(path); !setting.empty()) {
    const auto& settings = spec.model().command().settings();
    const auto found = settings.find(setting);
    return found == settings.end() ? "" : found->second;
  }
  const FieldDescriptor* const field = FieldOf(path);
  if (field == nullptr) return "";
  const Message* const section = SectionOf(path, spec);
  if (section == nullptr) return "";
  const v1::OptimizerSpec& optimizer = spec.train().optimizer();
  const bool set = IsSet(*section, *field);
  if (!set && path == "train.learning_rate") {
    return absl::StrCat(DefaultLearningRate(optimizer.kind()));
  }
  if (!set && path == "train.weight_decay") {
    return absl::StrCat(DefaultWeightDecay(optimizer.kind()));
  }
  if (!field->is_repeated()) {
    if (field->has_presence() && !set) return "";
    if (RulesOf(*field).auto_() && !set) return "";
    return ValueText(*section, *field, -1);
  }
  std::vector<std::string> items;
  for (int i = 0; i < section->GetReflection()->FieldSize(*section, field); ++i) {
    items.push_back(ValueText(*section, *field, i));
  }
  return absl::StrCat("[", absl::StrJoin(items, ", "), "]");
}

}  // namespace traind
