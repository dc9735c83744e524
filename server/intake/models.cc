#include "server/intake/models.h"

#include <absl/strings/str_cat.h>

#include <cmath>
#include <map>
#include <vector>

#include "common/base/job_layout.h"
#include "common/publish/ensemble.h"

namespace traind {
namespace {

void AddModel(const Job& source, const Member& member, double weight, v1::ModelSet& set) {
  v1::ModelRef& model = *set.add_models();
  model.set_fold(member.fold);
  model.set_trial(member.trial);
  model.set_seed(member.seed);
  model.set_kind(member.kind);
  // The checkpoints lie beside the out-of-fold predictions.
  model.set_path(absl::StrCat(JobDir(source.id), "/", member.oof.substr(0, member.oof.rfind('/'))));
  model.set_weight(weight);
  model.set_score(std::isfinite(member.score) ? member.score : 0);
  model.set_complete(member.complete);
}

void AddFloor(const Job& source, double weight, v1::ModelSet& set) {
  v1::ModelRef& model = *set.add_models();
  model.set_fold(-1);
  model.set_path(FloorDir(source.id));
  model.set_weight(weight);
  model.set_score(source.floor_score && std::isfinite(*source.floor_score) ? *source.floor_score
                                                                           : 0);
  model.set_complete(true);
  model.set_kind(source.floor_model);
}

void AddQuantiles(const Quantiles& quantiles, v1::ModelSet& set) {
  if (quantiles.levels.empty()) return;
  v1::QuantileSet& to = *set.mutable_quantiles();
  to.mutable_levels()->Assign(quantiles.levels.begin(), quantiles.levels.end());
  for (const TargetOffsets& from : quantiles.targets) {
    v1::TargetOffsetSet& target = *to.add_targets();
    target.mutable_at()->Assign(from.at.begin(), from.at.end());
    target.mutable_offsets()->Assign(from.offsets.begin(), from.offsets.end());
    target.set_not_negative(from.not_negative);
    target.mutable_steps()->Assign(from.steps.begin(), from.steps.end());
    target.mutable_scales()->Assign(from.scales.begin(), from.scales.end());
  }
}

// Returns the Prediction's weights; if it has none, all folds weigh the same, and so do the models
// of each.
std::vector<double> WeightsOf(const std::vector<Member>& members) {
  std::map<int, int> models;  // number of models by fold
  for (const Member& member : members) ++models[member.fold];
  std::vector<double> weights;
  bool told = false;
  for (const Member& member : members) {
    weights.push_back(member.weight);
    told |= member.weight > 0;
  }
  for (size_t k = 0; !told && k < members.size(); ++k) {
    weights[k] = 1.0 / static_cast<double>(models.size()) / models[members[k].fold];
  }
  return weights;
}

}  // namespace

absl::StatusOr<v1::ModelSet> ModelsOf(const Job& source,
                                      const std::optional<PublishedPrediction>& standing,
                                      bool floor_is_kept) {
  if (!source.tasks.empty() && UsesModels(source.tasks[0].kind)) {
    return absl::FailedPreconditionError(absl::StrCat(
        "job ", source.id, " has no models of its own; name the job that it predicts with"));
  }
  if (ProgramTrains(source.spec)) {
    return absl::FailedPreconditionError(
        absl::StrCat("job ", source.id,
                     " ran a program: its models are files that traind cannot "
                     "load; run the program on the later data"));
  }
  v1::ModelSet set;
  set.set_metric(source.spec.metric);
  std::vector<Member> members;
  double sum = 0, floor_weight = 0;
  const PublishedPrediction* told = nullptr;
  if (standing) {
    told = &*standing;
  } else if (source.prediction) {
    told = &*source.prediction;
  }
  if (told != nullptr) {
    members = told->members;
    for (const Member& member : members) sum += member.weight;
    set.set_quality(QualityName(told->quality));
    // If a floor that is not kept had a weight too, the score is not that of the models alone. (A
    // sum of 0 is from before weights were recorded, when the floor had none beside models.)
    const bool all_kept = floor_is_kept || sum == 0 || sum > 1 - 1e-6;
    if (told->oof_score && all_kept) set.set_oof(*told->oof_score);
    set.set_comparable(told->comparable && all_kept);
    if (floor_is_kept) floor_weight = members.empty() ? 1 : told->floor_weight;
    if (told->tuned.temperature != 1) set.set_temperature(told->tuned.temperature);
    if (told->tuned.threshold) set.set_threshold(*told->tuned.threshold);
    for (const TrialPower& power : told->tuned.powers) {
      v1::TrialPower& to = *set.add_powers();
      to.set_trial(power.trial);
      to.set_exponent(power.exponent);
    }
    AddQuantiles(told->quantiles, set);
  } else {
    for (const Task& task : source.tasks) {
      if (task.member) members.push_back(*task.member);
    }
    set.set_quality(QualityName(Quality::kDegraded));
  }
  if (members.empty() && floor_weight == 0) {
    return absl::FailedPreconditionError(absl::StrCat(
        "job ", source.id,
        told == nullptr ? " has no model yet"
                        : absl::StrCat(" is answered by its floor (", source.floor_model,
                                       "), which predicts no other rows")));
  }
  std::vector<double> weights = WeightsOf(members);
  weights.push_back(floor_weight);
  ScaleToOne(weights);
  for (size_t k = 0; k < members.size(); ++k) AddModel(source, members[k], weights[k], set);
  if (floor_weight > 0) AddFloor(source, weights.back(), set);
  return set;
}

}  // namespace traind
