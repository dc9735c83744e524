#include "server/rpc/trial_settings.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_replace.h>
#include <absl/strings/strip.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "common/job_rules/program_rules.h"
#include "common/search/range.h"
#include "common/spec/search_rules.h"
#include "common/spec/spec_rules.h"
#include "server/search/importance.h"
#include "server/search/search.h"

namespace traind {
namespace {

using Json = nlohmann::json;

// Returns the flat fields of a spec's section: "/optimizer/lr" and its value.
Json FieldsOf(const Json& parent, const std::string& section) {
  return parent.contains(section) ? parent[section].flatten() : Json::object();
}

// Returns the field of a kind of model; null: `name` is another section of the model.
const google::protobuf::FieldDescriptor* KindOf(const std::string& name) {
  const auto* const field = v1::ModelSpec::descriptor()->FindFieldByName(name);
  if (field == nullptr || field->containing_oneof() == nullptr) return nullptr;
  return field->containing_oneof()->name() == "architecture" ? field : nullptr;
}

// Values of flat fields that are not worth telling.
struct Usual {
  Json defaults = Json::object();
  Json unset = Json::object();  // the zeros that stand for the defaults
};

Usual UsualOf(const google::protobuf::FieldDescriptor& kind) {
  v1::JobSpec spec;
  v1::ModelSpec& model = *spec.mutable_model();
  google::protobuf::Message& fields = *model.GetReflection()->MutableMessage(&model, &kind);
  const auto flat = [&] { return FieldsOf(Json::parse(SpecToJson(spec))["model"], kind.name()); };
  Usual usual;
  usual.unset = flat();
  FillDefaults(fields);
  usual.defaults = flat();
  return usual;
}

bool Has(const Json& fields, const std::string& path, const Json& value) {
  const auto found = fields.find(path);
  return found != fields.end() && *found == value;
}

// Adds the fields that are not as usual; prefix: of their names.
void AddDiffering(const Json& fields, const Usual& usual, const std::string& prefix,
                  v1::Trial& trial) {
  for (const auto& [path, value] : fields.items()) {
    if (value.is_null() || Has(usual.defaults, path, value) || Has(usual.unset, path, value)) {
      continue;
    }
    const std::string name = absl::StrReplaceAll(absl::StripPrefix(path, "/"), {{"/", "."}});
    (*trial.mutable_settings())[prefix + name] =
        value.is_string() ? value.get<std::string>() : value.dump();
  }
}

// Reads the trials of one spec. Defaults of a kind and the spec's `train` are read once, as a spec
// may have hundreds of trials.
class TrialReader {
 public:
  explicit TrialReader(const Json& spec) { train_.defaults = FieldsOf(spec, "train"); }

  v1::Trial Read(const Json& from) {
    v1::Trial trial;
    trial.set_name(from.value("name", ""));
    const Json model = from.value("model", Json::object());
    for (const auto& [section, fields] : model.items()) {
      if (const auto* const kind = KindOf(section)) {
        trial.set_kind(section);
        // A program's only trial is the first; its command is no setting.
        if (section == kCommandKind) continue;
        AddDiffering(fields.flatten(), UsualOfKind(*kind), "", trial);
      } else {
        AddDiffering(fields.flatten(), Usual(), section + ".", trial);
      }
    }
    if (from.contains("train")) AddDiffering(FieldsOf(from, "train"), train_, "train.", trial);
    return trial;
  }

 private:
  const Usual& UsualOfKind(const google::protobuf::FieldDescriptor& kind) {
    const auto [at, added] = kinds_.try_emplace(kind.name());
    if (added) at->second = UsualOf(kind);
    return at->second;
  }

  Usual train_;
  std::map<std::string, Usual> kinds_;
};

std::vector<v1::Trial> TrialsOfSearch(const Spec& spec) {
  std::vector<v1::Trial> trials;
  for (const Trial& from : spec.trials) {
    v1::Trial& to = trials.emplace_back();
    to.set_index(static_cast<int>(trials.size()) - 1);
    to.set_name(from.name);
    to.set_kind(from.kind);
    to.set_proposed(from.proposed);
    if (from.settings == nullptr) continue;
    for (const auto& [path, value] : *from.settings) {
      (*to.mutable_settings())[ShortName(path, from.kind)] = value;
    }
  }
  return trials;
}

bool Searches(const Job& job) { return !job.spec.search.method.empty(); }

// What the folds of one trial are doing, and their scores.
struct Shown {
  int waiting = 0, busy = 0, failed = 0;
  std::map<int, double> scores;  // by fold
};

std::vector<Shown> ShownBy(const Job& job, size_t trials) {
  std::vector<Shown> all(trials);
  for (const Task& task : job.tasks) {
    const auto trial = static_cast<size_t>(task.trial);
    if (task.kind != TaskKind::kTrain || task.seed > 0 || trial >= trials) continue;
    Shown& shown = all[trial];
    shown.waiting += task.state == TaskState::kPending;
    shown.busy += task.state == TaskState::kRunning;
    if (!IsTerminal(task.state)) continue;
    if (task.member && task.score) {
      shown.scores[task.fold] = *task.score;
    } else if (!task.member) {
      shown.failed += task.attempts > 0;
    }
  }
  return all;
}

v1::TrialState StateOf(const Job& job, const Shown& shown, const Trial& trial) {
  const bool has_scores = !shown.scores.empty();
  if (shown.failed > 0) return v1::TRIAL_STATE_FAILED;
  if (shown.busy > 0 || (shown.waiting > 0 && has_scores)) return v1::TRIAL_STATE_RUNNING;
  if (has_scores) {
    const bool all = static_cast<int>(shown.scores.size()) >= job.spec.folds;
    return all || IsTerminal(job.state) ? v1::TRIAL_STATE_DONE : v1::TRIAL_STATE_PARTIAL;
  }
  const bool drawn = !Searches(job) || trial.settings != nullptr;
  return drawn ? v1::TRIAL_STATE_WAITING : v1::TRIAL_STATE_OPEN;
}

// Fills in what the folds of the trials have shown.
void AddResults(const Job& job, std::vector<v1::Trial>& trials) {
  const std::vector<Shown> all = ShownBy(job, trials.size());
  for (size_t t = 0; t < trials.size(); ++t) {
    const Trial own = t < job.spec.trials.size() ? job.spec.trials[t] : Trial();
    trials[t].set_state(StateOf(job, all[t], own));
    double sum = 0, gain = 0;
    int shared = 0;
    for (const auto& [fold, score] : all[t].scores) {
      sum += score;
      const auto first = all[0].scores.find(fold);
      if (first == all[0].scores.end()) continue;
      gain += job.spec.higher_is_better ? score - first->second : first->second - score;
      ++shared;
    }
    const auto count = static_cast<int>(all[t].scores.size());
    trials[t].set_scored_folds(count);
    if (count > 0) trials[t].set_score(sum / count);
    if (shared > 0) trials[t].set_gain(gain / shared);
  }
}

std::vector<v1::Trial> TrialsOfModels(const Job& job) {
  std::vector<v1::Trial> trials;
  const Json spec = Json::parse(job.spec_json, nullptr, false);
  if (!spec.is_object() || !spec.contains("trials")) return trials;
  try {
    TrialReader reader(spec);
    for (const Json& from : spec["trials"]) {
      trials.push_back(reader.Read(from));
      trials.back().set_index(static_cast<int>(trials.size()) - 1);
    }
  } catch (const Json::exception&) {
    trials.clear();
  }
  return trials;
}

// How many proposals keep all slots busy: as many trials run as folds do beside each other.
void CountOpen(const Job& job, v1::Search& search) {
  const std::vector<v1::Trial> trials = TrialsOf(job);
  int open = 0, begun = 0;
  for (const v1::Trial& trial : trials) {
    open += trial.state() == v1::TRIAL_STATE_OPEN;
    begun += trial.index() > 0 &&
             (trial.state() == v1::TRIAL_STATE_WAITING || trial.state() == v1::TRIAL_STATE_RUNNING);
  }
  if (IsTerminal(job.state) || job.state == JobState::kFinalizing || StopsTraining(job)) return;
  const int beside = job.plans.empty() ? 1 : job.plans.back().parallel_folds;
  search.set_open_trials(open);
  search.set_wanted_trials(std::clamp(beside - begun, 0, open));
}

}  // namespace

std::vector<v1::Trial> TrialsOf(const Job& job) {
  std::vector<v1::Trial> trials = Searches(job) ? TrialsOfSearch(job.spec) : TrialsOfModels(job);
  AddResults(job, trials);
  return trials;
}

std::string ShortName(absl::string_view path, const std::string& kind) {
  if (absl::ConsumePrefix(&path, kSettingPath)) return std::string(path);
  return std::string(absl::StripPrefix(path, absl::StrCat("model.", kind, ".")));
}

std::optional<v1::Search> SearchOf(const Job& job) {
  if (!Searches(job)) return std::nullopt;
  v1::Search search;
  search.set_method(job.spec.search.method);
  if (AsksClients(job.spec.search)) CountOpen(job, search);
  const absl::StatusOr<Space> space = ParseSpace(job.spec.search.space);
  if (!space.ok()) return search;
  const std::vector<std::optional<double>> shares = Importances(*space, TriedBy(job));
  for (size_t i = 0; i < space->size(); ++i) {
    v1::SearchParameter& parameter = *search.add_parameters();
    parameter.set_path(ShortName((*space)[i].path, job.spec.trials[0].kind));
    parameter.set_range(Text((*space)[i].range));
    if (shares[i]) parameter.set_importance(*shares[i]);
  }
  return search;
}

std::string SpecForTrial(const Job& job, int trial) {
  const auto at = static_cast<size_t>(trial);
  if (!Searches(job) || trial == 0 || at >= job.spec.trials.size()) return job.spec_json;
  const Trial& own = job.spec.trials[at];
  absl::StatusOr<v1::JobSpec> spec = SpecFromJson(job.spec_json);
  if (!spec.ok() || own.settings == nullptr) return job.spec_json;
  v1::JobSpec tried = *spec;
  for (const auto& [path, value] : *own.settings) {
    // Intake has tried the ends of every range.
    SetSearched(path, value, tried).IgnoreError();
  }
  // A trial is known by its place; the Worker reads no other one.
  for (int i = 0; i < trial; ++i) spec->add_trials();
  v1::TrialSpec& to = *spec->add_trials();
  to.set_name(own.name);
  *to.mutable_model() = tried.model();
  *to.mutable_train() = tried.train();
  return SpecToJson(*spec);
}

}  // namespace traind
