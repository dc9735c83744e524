#include "worker/inference/network_model.h"

#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/strip.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <utility>
#include <vector>

#include "common/base/job_layout.h"
#include "common/base/status_macros.h"
#include "worker/checkpoint/checkpoint.h"
#include "worker/data/image_source.h"
#include "worker/data/text_source.h"
#include "worker/data/volume_source.h"
#include "worker/learner/rows_at_once.h"
#include "worker/predict/predictor.h"
#include "worker/train/training_spec.h"

namespace traind {
namespace {

namespace fs = std::filesystem;

// The manifests of the folder's checkpoints, relative to the state folder, newest first.
std::vector<std::string> Manifests(const std::string& state_dir, const std::string& dir) {
  std::vector<int64_t> steps;
  std::error_code error;
  for (fs::directory_iterator it(state_dir + "/" + dir, error), end; !error && it != end;
       it.increment(error)) {
    const std::string name = it->path().filename().string();
    absl::string_view rest = name;
    int64_t step = 0;
    if (absl::ConsumePrefix(&rest, "checkpoint-") && absl::ConsumeSuffix(&rest, ".json") &&
        absl::SimpleAtoi(rest, &step)) {
      steps.push_back(step);
    }
  }
  std::sort(steps.rbegin(), steps.rend());
  std::vector<std::string> manifests;
  for (const int64_t step : steps) {
    manifests.push_back(absl::StrCat(dir, "/checkpoint-", step, ".json"));
  }
  return manifests;
}

}  // namespace

absl::StatusOr<std::unique_ptr<TrainedModel>> NetworkModel::Load(const std::string& state_dir,
                                                                 const std::string& dir,
                                                                 ModelFile file) {
  std::unique_ptr<NetworkModel> model(new NetworkModel(std::move(file)));
  RETURN_IF_ERROR(model->CreateLearner(state_dir));
  RETURN_IF_ERROR(model->LoadWeights(state_dir, dir));
  return model;
}

absl::Status NetworkModel::CreateLearner(const std::string& state_dir) {
  ASSIGN_OR_RETURN(const TrainingSpec spec, ParseTrainingSpec(file_.spec_json, file_.trial));
  LearnerOptions options;
  options.model = spec.model;
  if (options.model.script.has_value()) {
    plain::ScriptSpec& script = *options.model.script;
    script.file = absl::StrCat(state_dir, "/", ScriptCachePath(script.sha256));
  }
  options.shape.numeric = encoder_.numeric_width();
  options.shape.cardinalities = encoder_.cardinalities();
  options.shape.outputs = static_cast<int64_t>(file_.input.outputs());
  options.shape.window = encoder_.shape().window;
  options.horizon = encoder_.shape().horizon;
  if (!file_.tokenizer.empty()) {
    ASSIGN_OR_RETURN(tokenizer_, ParseTokenizer(file_.tokenizer));
    max_tokens_ = spec.text.max_tokens;
    options.shape.vocabulary = VocabularyOf(*tokenizer_);
    options.shape.max_tokens = max_tokens_;
  }
  if (image() != nullptr) {
    options.shape.image = {image()->channels, image()->size, image()->size};
    rows_per_step_ = RowsAtOnce(options.model, options.shape, /*gpu=*/false);
  }
  if (file_.volume.has_value()) {
    const Extent3& patch = file_.volume->patch;
    options.shape = ModelShape();  // the network sees voxels alone
    options.shape.image = {file_.volume->channels, patch[0], patch[1], patch[2]};
    options.shape.outputs = file_.volume->values();
  }
  options.objective = spec.objective;
  options.objective.class_weights.clear();  // they matter in training only
  if (!file_.volume.has_value()) {
    options.target_mean = encoder_.target_mean();
    options.target_scale = encoder_.target_scale();
  }
  options.optimizer = spec.optimizer;
  options.ema_decay = spec.ema_decay;
  options.averages = spec.swa > 0;
  options.paths = spec.paths;
  architecture_ = NetworkName(spec.model);
  // A multiple of the rows that an MLP's hand-written pass takes at once.
  constexpr int64_t kHandwrittenRows = 31 * 132;
  optimizer_ = std::string(OptimizerName(spec.optimizer.kind));
  ASSIGN_OR_RETURN(learner_, Learner::Create(options, LearnerData()));
  if (learner_->PredictsByHand()) rows_per_step_ = kHandwrittenRows;
  return absl::OkStatus();
}

absl::Status NetworkModel::LoadWeights(const std::string& state_dir, const std::string& dir) {
  Checkpoint expected;
  expected.table_sha256 = file_.table_sha256;
  expected.fold = file_.fold;
  expected.seed = file_.seed;
  expected.model = architecture_;
  expected.optimizer = optimizer_;
  expected.slots[kWeightsSlot];
  const std::vector<std::string> manifests = Manifests(state_dir, dir);
  if (manifests.empty()) {
    return absl::NotFoundError(absl::StrCat(dir, " has no checkpoint (yet)"));
  }
  std::vector<std::string> passed_over;
  ASSIGN_OR_RETURN(
      const FoundCheckpoint found,
      FindCheckpoint(state_dir, manifests[0], learner_->layout(), expected, passed_over));
  const Checkpoint& checkpoint = found.checkpoint;
  ASSIGN_OR_RETURN(Learner::State state, learner_->Save());
  const auto best = checkpoint.slots.find(kBestWeightsSlot);
  const absl::Span<const float> weights =
      best != checkpoint.slots.end() ? best->second : checkpoint.slots.at(kWeightsSlot);
  state.slots[kBestWeightsSlot].assign(weights.begin(), weights.end());
  RETURN_IF_ERROR(learner_->Load(state));
  // As the fold's own rows were, unless this processor only emulates that.
  const std::optional<Precision> answers_in = PrecisionByName(checkpoint.answers_in);
  if (answers_in == Precision::kBf16 && CpuMultipliesBf16()) learner_->AnswerIn(*answers_in);
  attempt_ = checkpoint.attempt;
  smearing_ = checkpoint.best_smearing;
  epoch_ = checkpoint.has_best ? checkpoint.best_epoch : checkpoint.epoch_fraction;
  step_ = checkpoint.step;
  return absl::OkStatus();
}

absl::Status NetworkModel::Predict(const LaterRows& rows, int64_t begin, int64_t end,
                                   absl::Span<float> out) {
  EncodedRows encoded = encoder_.Encode(rows, begin, end);
  if (tokenizer_ != nullptr) {
    auto texts = std::make_shared<TextSource>(*tokenizer_, max_tokens_);
    for (int64_t row = begin; row < end; ++row) texts->Add(rows.texts[static_cast<size_t>(row)]);
    encoded.media = std::move(texts);
  }
  if (image() != nullptr) {
    const int64_t size = image()->size, channels = image()->channels;
    const uint8_t* first = rows.pixels + begin * size * size * channels;
    // The caller keeps the pixels.
    std::shared_ptr<const uint8_t> pixels(std::shared_ptr<const void>(), first);
    encoded.media = std::make_shared<ImageSource>(std::move(pixels), size, channels,
                                                  file_.pixel_scale, Augmentation());
  }
  RETURN_IF_ERROR(learner_->Predict(Weights::kBest, encoded, out));
  ToOwnUnit(file_.encoder.transforms, smearing_, out);
  return absl::OkStatus();
}

int64_t NetworkModel::InstanceBytes() const {
  constexpr int64_t kSlots = 5;  // weights, the best ones, a gradient, two moments of the optimizer
  return kSlots * TotalSize(learner_->layout()) * static_cast<int64_t>(sizeof(float));
}

absl::StatusOr<std::vector<float>> NetworkModel::Forecast(std::shared_ptr<const Table> later) {
  ASSIGN_OR_RETURN(
      TestAnswers answers,
      PredictTest(*learner_, RowEncoder(file_.encoder, std::move(later)), /*media=*/nullptr,
                  Weights::kBest, static_cast<int>(file_.input.outputs()), /*file=*/""));
  return std::move(answers.values);
}

absl::Status NetworkModel::PredictVolumes(std::shared_ptr<const VolumeSet> volumes,
                                          const TakeValues& take,
                                          const std::function<absl::Status()>& between) {
  return learner_->PredictVolumes(
      Weights::kBest, VolumeSource(std::move(volumes), Split::kTest, file_.volume->patch), take,
      between);
}

}  // namespace traind
