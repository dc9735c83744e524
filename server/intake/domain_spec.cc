#include "server/intake/domain_spec.h"

#include <absl/strings/ascii.h>
#include <absl/strings/str_cat.h>
#include <google/protobuf/util/time_util.h>

#include <algorithm>
#include <string>
#include <vector>

#include "common/base/bytes_text.h"
#include "common/base/durable_file.h"
#include "common/base/engine_version.h"
#include "common/job_rules/kernel_rules.h"
#include "common/job_rules/program_rules.h"
#include "common/job_rules/task_rules.h"
#include "common/spec/media_rules.h"
#include "common/spec/spec_rules.h"
#include "server/intake/epoch_work.h"

namespace traind {
namespace {

using google::protobuf::util::TimeUtil;

// Returns a hash of everything that shapes training besides the files' bytes: equal keys train
// equal folds.
std::string CacheKey(v1::JobSpec spec) {
  if (spec.cache() == "off" || !spec.has_train()) return "";
  // Trials above the first are compared by their settings (server/reuse).
  for (const char* field : {"name", "output", "labels", "priority", "budget", "preset", "cache",
                            "from", "predictions", "search", "after"}) {
    spec.GetReflection()->ClearField(&spec, spec.GetDescriptor()->FindFieldByName(field));
  }
  spec.mutable_data()->clear_train();
  spec.mutable_data()->clear_test();
  if (spec.data().has_image()) {
    spec.mutable_data()->mutable_image()->clear_labels();
    spec.mutable_data()->mutable_image()->clear_test_labels();
  }
  // Folds of engines that did not know this field have kept all components.
  v1::VolumeSpec* const volume =
      spec.data().has_volume() ? spec.mutable_data()->mutable_volume() : nullptr;
  if (volume != nullptr && volume->components() == "all") volume->clear_components();
  if (spec.model().has_script()) spec.mutable_model()->mutable_script()->clear_file();
  if (spec.model().has_pretrained()) {
    spec.mutable_model()->mutable_pretrained()->clear_file();
    spec.mutable_model()->mutable_pretrained()->clear_folder();
  }
  v1::TrainSpec& train = *spec.mutable_train();
  // Nor did they transform targets.
  if (train.target_transform() == kNoTransform) train.clear_target_transform();
  train.clear_checkpoint_every();
  train.clear_checkpoint_epochs();
  train.clear_keep_best();
  train.clear_gradient_norm();
  train.clear_seeds();  // the number of models does not change any of them
  v1::ResourceSpec& resources = *spec.mutable_resources();
  resources.clear_labels();
  resources.clear_gpu();
  resources.clear_gpu_memory();
  return Sha256Hex(absl::StrCat("engine ", kEngineVersion, "\n", SpecToJson(spec)));
}

// Returns a key of everything besides the data that a step's time depends on: equal keys are
// equally fast.
std::string SpeedKey(const v1::JobSpec& spec) {
  if (!spec.has_train()) return "";
  v1::JobSpec shape;
  // The first of several trials is the one that the Plan is made for.
  *shape.mutable_model() = spec.trials_size() > 0 ? spec.trials(0).model() : spec.model();
  shape.mutable_model()->clear_pretrained();
  shape.mutable_data()->set_window(spec.data().window());
  if (spec.data().has_image()) *shape.mutable_data()->mutable_image() = spec.data().image();
  if (spec.data().has_text()) *shape.mutable_data()->mutable_text() = spec.data().text();
  if (spec.train().has_patches()) {
    *shape.mutable_train()->mutable_patches() = spec.train().patches();
    for (const std::string& name : spec.data().volume().classes()) {
      shape.mutable_data()->mutable_volume()->add_classes(name);
    }
    // Predictions take as long as there are voxels on the grid of this spacing.
    if (const v1::VolumeSpec& from = spec.data().volume(); Resamples(from)) {
      v1::VolumeSpec& volume = *shape.mutable_data()->mutable_volume();
      volume.set_spacing(from.spacing());
      *volume.mutable_spacings() = from.spacings();
    }
  }
  shape.mutable_resources()->set_slots(spec.resources().slots());
  shape.mutable_resources()->set_device(spec.resources().device());
  shape.mutable_resources()->set_gpu(spec.resources().gpu());
  shape.mutable_resources()->set_gpu_memory(spec.resources().gpu_memory());
  shape.mutable_train()->set_batch(spec.train().batch());
  shape.mutable_train()->set_accumulation(spec.train().accumulation());
  shape.mutable_train()->set_precision(spec.train().precision());
  shape.mutable_train()->set_recompute(spec.train().recompute());
  return Sha256Hex(SpecToJson(shape));
}

// Returns the settings of a trial that the Plan depends on. train: its own, or the Job's.
Trial TrialOf(const std::string& name, const v1::ModelSpec& model, const v1::TrainSpec& train) {
  Trial trial;
  trial.name = name;
  trial.epochs = train.epochs();
  trial.patience = train.patience();
  const auto* const kind = model.GetReflection()->GetOneofFieldDescriptor(
      model, v1::ModelSpec::descriptor()->FindOneofByName("architecture"));
  if (kind != nullptr) trial.kind = kind->name();
  const auto rounds = [&trial](int64_t all, int64_t patience) {
    trial.epochs = static_cast<int>(EpochsOfRounds(all));
    trial.patience = patience == 0 ? 0 : static_cast<int>(EpochsOfRounds(patience));
  };
  if (model.has_lightgbm()) {
    rounds(model.lightgbm().num_iterations(), model.lightgbm().early_stopping_round());
  }
  if (model.has_xgboost()) {
    rounds(model.xgboost().num_boost_round(), model.xgboost().early_stopping_rounds());
  }
  if (model.has_kernel()) {
    const std::vector<KernelSetting> tried =
        KernelSettings(model.kernel().alpha(), model.kernel().gamma());
    rounds(static_cast<int64_t>(tried.size()), /*patience=*/0);
  }
  return trial;
}

// Returns the trials of a spec, or the one that it is where it names none.
std::vector<Trial> TrialsOf(const v1::JobSpec& spec) {
  std::vector<Trial> trials;
  for (const v1::TrialSpec& trial : spec.trials()) {
    trials.push_back(
        TrialOf(trial.name(), trial.model(), trial.has_train() ? trial.train() : spec.train()));
  }
  if (trials.empty()) trials.push_back(TrialOf("", spec.model(), spec.train()));
  if (spec.has_run()) trials[0].kind = kProgramKind;
  return trials;
}

// REQUIRES: checked (common/spec/spec_rules.h).
Constraints ConstraintsOf(const v1::ResourceSpec& from) {
  Constraints to;
  for (const auto& [key, value] : from.labels()) to.labels.insert(absl::StrCat(key, "=", value));
  to.gpu = absl::AsciiStrToLower(absl::StripAsciiWhitespace(from.gpu()));
  to.gpu_memory_bytes = ParseBytes(from.gpu_memory()).value_or(0);
  return to;
}

}  // namespace

Spec ToDomain(const v1::JobSpec& from) {
  Spec to;
  to.name = from.name();
  to.metric = MetricOfJob(from);
  to.higher_is_better = HigherIsBetter(to.metric);
  to.folds = from.data().folds();
  to.trials = TrialsOf(from);
  to.epochs = from.has_train() ? to.trials[0].epochs : 0;
  to.patience = from.train().patience();
  if (from.has_run()) to.folds = from.run().folds();
  if (from.has_run() || from.model().has_command()) {
    const int epochs = from.has_run() ? from.run().epochs() : from.model().command().epochs();
    // One that tells of no epochs is an epoch by itself.
    to.epochs = to.trials[0].epochs = std::max(1, epochs);
    to.patience = to.trials[0].patience = 0;
  }
  to.seeds = std::max(1, from.train().seeds());
  to.slots = from.resources().slots();
  to.device = from.resources().device();
  to.constraints = ConstraintsOf(from.resources());
  to.batch = from.train().batch();
  to.precision = from.train().precision();
  to.priority = from.priority();
  to.labels.insert(from.labels().begin(), from.labels().end());
  to.has_test = !from.data().test().empty();
  if (from.budget().has_time()) {
    to.budget = absl::Milliseconds(TimeUtil::DurationToMilliseconds(from.budget().time()));
  }
  if (from.budget().has_deadline()) {
    to.deadline = absl::FromUnixMillis(TimeUtil::TimestampToMilliseconds(from.budget().deadline()));
  }
  to.policy = from.budget().policy() == "fixed" ? Policy::kFixed : Policy::kAdaptive;
  to.shares = {from.budget().plan_share(),
               from.budget().first_fold_share(),
               from.budget().reserve_share(),
               from.budget().stop_share(),
               from.budget().reserve_margin(),
               absl::Milliseconds(TimeUtil::DurationToMilliseconds(from.budget().reserve_least()))};
  to.subsample = from.budget().subsample();
  to.cache_key = CacheKey(from);
  to.speed_key = SpeedKey(from);
  to.cache_read = from.cache() == "use";
  to.from = from.from();
  to.after_any_end = from.after().end() == "any";
  return to;
}

}  // namespace traind
