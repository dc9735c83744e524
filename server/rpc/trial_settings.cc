#include "server/rpc/trial_settings.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_replace.h>
#include <absl/strings/strip.h>

#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "common/spec/search_rules.h"
#include "common/spec/spec_rules.h"

namespace traind {
namespace {

using Json = nlohmann::json;

// Returns the fields below a key of a spec's JSON, flat: "/optimizer/lr" and its value.
Json FieldsBelow(const v1::JobSpec& spec, const std::string& key) {
  const Json json = Json::parse(SpecToJson(spec), nullptr, false);
  return json.is_object() && json.contains(key) ? json[key].flatten() : Json::object();
}

// Adds the fields that differ, without the `strip` that their paths begin with, behind `prefix`.
void AddDiffering(const Json& fields, const Json& base, const std::string& strip,
                  const std::string& prefix, v1::Trial& trial) {
  for (const auto& [path, value] : fields.items()) {
    if (value.is_null() || (base.contains(path) && base[path] == value)) continue;
    const std::string name = absl::StrReplaceAll(absl::StripPrefix(path, strip), {{"/", "."}});
    (*trial.mutable_settings())[prefix + name] =
        value.is_string() ? value.get<std::string>() : value.dump();
  }
}

v1::Trial TrialOf(const v1::JobSpec& spec, const v1::TrialSpec& from) {
  v1::Trial trial;
  trial.set_name(from.name());
  v1::JobSpec tried, base;
  *tried.mutable_model() = from.model();
  const auto* const kind = from.model().GetReflection()->GetOneofFieldDescriptor(
      from.model(), from.model().GetDescriptor()->FindOneofByName("architecture"));
  if (kind != nullptr) {
    trial.set_kind(kind->name());
    base.mutable_model()->GetReflection()->MutableMessage(base.mutable_model(), kind);
    FillDefaults(*tried.mutable_model());
    FillDefaults(*base.mutable_model());
    AddDiffering(FieldsBelow(tried, "model"), FieldsBelow(base, "model"),
                 absl::StrCat("/", kind->name(), "/"), "", trial);
  }
  if (from.has_train()) {
    *tried.mutable_train() = from.train();
    *base.mutable_train() = spec.train();
    AddDiffering(FieldsBelow(tried, "train"), FieldsBelow(base, "train"), "/", "train.", trial);
  }
  return trial;
}

// "num_leaves" of "model.lightgbm.num_leaves"; other paths stay.
std::string ShortName(absl::string_view path, const std::string& kind) {
  return std::string(absl::StripPrefix(path, absl::StrCat("model.", kind, ".")));
}

std::vector<v1::Trial> TrialsOfSearch(const Spec& spec) {
  std::vector<v1::Trial> trials;
  for (const Trial& from : spec.trials) {
    v1::Trial& to = trials.emplace_back();
    to.set_index(static_cast<int>(trials.size()) - 1);
    to.set_name(from.name);
    to.set_kind(from.kind);
    if (from.settings == nullptr) continue;
    for (const auto& [path, value] : *from.settings) {
      (*to.mutable_settings())[ShortName(path, from.kind)] = value;
    }
  }
  return trials;
}

bool Searches(const Job& job) { return !job.spec.search.method.empty(); }

}  // namespace

std::vector<v1::Trial> TrialsOf(const Job& job) {
  if (Searches(job)) return TrialsOfSearch(job.spec);
  const auto spec = SpecFromJson(job.spec_json);
  std::vector<v1::Trial> trials;
  if (!spec.ok()) return trials;
  for (const v1::TrialSpec& from : spec->trials()) {
    trials.push_back(TrialOf(*spec, from));
    trials.back().set_index(static_cast<int>(trials.size()) - 1);
  }
  return trials;
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
