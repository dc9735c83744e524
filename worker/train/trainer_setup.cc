// How a task begins.
#include <absl/strings/str_cat.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "common/base/durable_file.h"
#include "common/base/job_layout.h"
#include "common/base/status_macros.h"
#include "worker/data/fold_rows.h"
#include "worker/data/random.h"
#include "worker/data/volume_source.h"
#include "worker/device/cuda_api.h"
#include "worker/device/process_memory.h"
#include "worker/predict/model_file.h"
#include "worker/task/failure.h"
#include "worker/train/precision_choice.h"
#include "worker/train/trainer.h"

namespace traind {
absl::Status Trainer::Start() {
  threads_ = train_.threads;
  SetTorchThreads(threads_);
  orders_ = control_.orders();
  started_ = clock_.MonotonicNow();
  // Those of the other ranks may be older: the first meeting tells them.
  orders_version_ = 0;
  planned_epochs_ = orders_.epochs;
  planned_row_share_ = orders_.row_share;
  if (planned_epochs_ < 1) {
    return absl::InvalidArgumentError(absl::StrCat("epochs: ", planned_epochs_, " is below 1"));
  }
  KeepFreedMemory(true);
  ResetPeakResident();
  ASSIGN_OR_RETURN(spec_, ParseTrainingSpec(train_.spec_json, train_.trial));
  spec_.seed = SeedOfModel(spec_.seed, train_.seed);
  ASSIGN_OR_RETURN(data_, LoadFold(train_.state_dir, train_.table, train_.job, train_.fold, spec_));
  evaluator_ = std::make_unique<Evaluator>(data_, spec_.metric);
  if (train_.device == "cuda") {
    ASSIGN_OR_RETURN(cuda_, LoadCuda());
    cuda_->EmptyCache();  // of the task before
    cuda_->ResetPeakMemory();
  } else if (train_.device != "cpu") {
    return absl::InvalidArgumentError(absl::StrCat("device: \"", train_.device, "\""));
  }
  RETURN_IF_ERROR(JoinGang());
  RETURN_IF_ERROR(CreateLearner());
  if (gang_->leads()) {
    RETURN_IF_ERROR(
        MakeDirs(absl::StrCat(train_.state_dir, "/", AttemptDir(train_.job, train_.attempt))));
    FoldSaverOptions options;
    options.state_dir = train_.state_dir;
    options.job = train_.job;
    options.attempt = train_.attempt;
    options.fold = train_.fold;
    options.outputs = data_.outputs;
    options.checkpoint_every = absl::Milliseconds(train_.checkpoint_every_ms);
    options.checkpoints_by_cost = spec_.checkpoints_by_cost;
    options.keep_best = spec_.keep_best;
    options.metric = spec_.metric;
    saver_ = std::make_unique<FoldSaver>(options, sink_, clock_);
    SaveModelFile();
  }
  RETURN_IF_ERROR(Resume());
  SendStarted();
  validated_at_ = progress_at_ = clock_.MonotonicNow();
  progress_step_ = step_;
  usage_.emplace(threads_, cuda_ != nullptr, data_.shape().window == 1, batch_);
  loader_.emplace(train_.loader_threads > 0 ? train_.loader_threads : train_.threads);
  MeasureUsage(progress_at_, 0);  // what was before the first step is not its
  return absl::OkStatus();
}

// The file lies beside the checkpoints: with it their weights predict rows that come later.
void Trainer::SaveModelFile() {
  ModelFile file = ModelFileOf(train_, spec_.seed, *data_.table, data_.encoder->state());
  if (data_.tokenizer != nullptr) file.tokenizer = data_.tokenizer->Serialize();
  file.pixel_scale = data_.pixel_scale;
  if (file.volume.has_value()) {
    const VolumeSet& set = data_.volumes()->set();
    file.volume->channels = set.channels();
    file.volume->classes = set.classes();
    file.volume->treatment = set.treatment();
    file.volume->patch = data_.volumes()->patch();
  }
  const absl::Status saved =
      WriteModelFile(train_.state_dir, AttemptDir(train_.job, train_.attempt), file);
  if (!saved.ok()) Warn(absl::StrCat("no later file can be predicted: ", saved.message()));
}

absl::Status Trainer::JoinGang() {
  if (train_.world_size > 1) {
    GroupOptions options;
    options.host = train_.rendezvous.host;
    options.port = train_.rendezvous.port;
    options.rank = train_.rank;
    options.world_size = train_.world_size;
    options.timeout = absl::Milliseconds(train_.rendezvous.timeout_ms);
    options.cuda = cuda_;
    options.transport = spec_.transport;
    const plain::RendezvousSpec& wished = spec_.rendezvous;
    if (!wished.host.empty()) options.host = wished.host;
    if (wished.port > 0) {
      options.port =
          static_cast<int>(wished.port) + train_.fold + (train_.trial + train_.seed) * spec_.folds;
    }
    if (wished.timeout.has_value()) options.timeout = *wished.timeout;
    exchange_timeout_ = options.timeout;
    ASSIGN_OR_RETURN(group_, Group::Join(options));
  }
  gang_ = std::make_unique<Gang>(group_.get());
  return absl::OkStatus();
}

absl::Status Trainer::CreateLearner() {
  LearnerData data = data_.Encode();
  LearnerOptions options;
  options.model = spec_.model;
  if (options.model.script.has_value()) {
    plain::ScriptSpec& script = *options.model.script;
    script.file = absl::StrCat(train_.state_dir, "/", ScriptCachePath(script.sha256));
  }
  options.shape = data_.shape();
  options.horizon = data_.sample.horizon;
  options.objective = spec_.objective;
  if (IsSegmentation(spec_.metric)) options.mask_score = spec_.metric.kind().of_masks;
  if (spec_.balanced_classes) {
    options.objective.class_weights =
        BalancedClassWeights(data.classes, data_.rows.training, data_.outputs);
  }
  const size_t weights = options.objective.class_weights.size();
  if (weights > 0 && weights != static_cast<size_t>(data_.outputs)) {
    return absl::InvalidArgumentError(absl::StrCat("spec field train.loss.weights: ", weights,
                                                   " weights for ", data_.outputs, " classes"));
  }
  if (!spec_.classification && data_.volumes() == nullptr) {
    options.target_mean = data_.encoder->target_mean();
    options.target_scale = data_.encoder->target_scale();
  }
  options.optimizer = spec_.optimizer;
  // No gradient is as long as that: it is measured, and never clipped.
  constexpr double kNeverClips = 1e30;
  options.clip_norm = spec_.clip_norm == 0 && spec_.gradient_norm ? kNeverClips : spec_.clip_norm;
  options.ema_decay = spec_.ema_decay;
  options.ema_warmup = spec_.ema_warmup;
  options.averages = spec_.swa > 0;
  options.layer_decay = spec_.layer_decay;
  options.thaws_by_layer = spec_.thaw_layers > 0;
  options.decay_norms = spec_.decay_norms;
  options.mixup = spec_.mixup;
  options.cutmix = spec_.cutmix;
  options.paths = PathsWorthTheirStart(spec_.paths, orders_.stop_at - clock_.MonotonicNow());
  options.seed = StreamSeed(spec_.seed, Stream::kWeights, static_cast<uint64_t>(train_.fold));
  options.cuda = cuda_;
  options.group = group_.get();
  ASSIGN_OR_RETURN(learner_, Learner::Create(options, std::move(data)));
  rows_at_once_ = learner_->rows_at_once();
  if (learner_->loader_threads() > 0) learner_->AddLoaderThreadsUpTo(train_.loader_threads);
  if (learner_->rows_on_host()) {
    SendDecision(DecisionRule::kMemory,
                 absl::StrCat("the rows would take more than half of the free memory of rank ",
                              gang_->rank(), "'s GPU"),
                 "rows on the GPU", "rows in the host's memory; each batch is copied");
  }
  return absl::OkStatus();
}

// Every rank reads the file, whose digest is the spec's: all start with the same weights.
absl::Status Trainer::StartPretrained() {
  if (!spec_.pretrained.has_value()) return absl::OkStatus();
  ASSIGN_OR_RETURN(Learner::State state, learner_->Save());
  std::vector<float>& weights = state.slots[kWeightsSlot];
  const int64_t pieces =
      spec_.pretrained->tokens_given && data_.tokenizer != nullptr ? data_.tokenizer->size() : 0;
  const std::string path =
      absl::StrCat(train_.state_dir, "/", WeightsCachePath(spec_.pretrained->sha256));
  ASSIGN_OR_RETURN(
      const PretrainedReport report,
      LoadPretrained(*spec_.pretrained, path, learner_->layout(), pieces, absl::MakeSpan(weights)));
  RETURN_IF_ERROR(CheckFrozenBody(report));
  for (const char* slot : {kBestWeightsSlot, kEmaSlot}) {
    if (state.slots.count(slot) > 0) state.slots[slot] = weights;
  }
  RETURN_IF_ERROR(learner_->Load(state));
  pretrained_ = report.Share();
  if (gang_->leads()) {
    SendDecision(DecisionRule::kPretrained, report.Text(3), "random",
                 absl::StrCat(report.Share(), " parameters"));
  }
  return absl::OkStatus();
}

// What is at random and stays so is of no use.
absl::Status Trainer::CheckFrozenBody(const PretrainedReport& report) const {
  if (spec_.frozen_epochs == 0 && spec_.thaw_layers == 0) return absl::OkStatus();
  for (const ParameterInfo& parameter : learner_->layout()) {
    if (parameter.depth == kHeadDepth || IsOfLora(parameter.name)) continue;
    if (std::count(report.kept.begin(), report.kept.end(), parameter.name) == 0) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("train.freeze: ", parameter.name, " is of the body, and not in the file"));
  }
  return absl::OkStatus();
}

absl::Status Trainer::ChooseTrainingPrecision(const Checkpoint* resumed) {
  PrecisionRequest request;
  request.attempt = train_.attempt;
  if (!train_.precision.empty() && train_.precision != "auto") {
    request.wanted = PrecisionByName(train_.precision);
    if (!request.wanted.has_value()) {
      return absl::InvalidArgumentError(absl::StrCat("precision: \"", train_.precision, "\""));
    }
  } else if (resumed != nullptr) {
    request.wanted = PrecisionByName(resumed->precision);
  } else {
    request.wanted = spec_.precision;
  }
  if (cuda_ != nullptr) request.compute_capability = cuda_->ComputeCapability();
  request.step = [this](const StepInput& step) { return RunMicroBatchesThatFit(step); };
  request.batch = batch_;
  request.training_rows = data_.rows.training;
  request.window = data_.shape().window;
  if (data_.volumes() != nullptr) {
    // Most of a U-Net's weights are used where there are fewer voxels than in the patch.
    constexpr int64_t kVoxelsPerUse = 8;
    request.window = std::max<int64_t>(1, Volume(data_.volumes()->patch()) / kVoxelsPerUse);
  }
  request.planned_steps = schedule_.total_steps;
  request.remaining = orders_.stop_at - clock_.MonotonicNow();
  ASSIGN_OR_RETURN(threads_, ChooseThreads(request, threads_, *learner_, *gang_, sink_));
  ASSIGN_OR_RETURN(const Precision chosen, ChoosePrecision(request, *learner_, *gang_, sink_));
  if (resumed != nullptr && gang_->leads() && resumed->precision != PrecisionName(chosen)) {
    SendDecision(DecisionRule::kPrecision, "resumed in another precision than the checkpoint's",
                 resumed->precision, std::string(PrecisionName(chosen)));
  }
  return absl::OkStatus();
}

// The settings that the spec or the Rank has chosen.
std::string Trainer::ResolvedSettings() const {
  return absl::StrCat(
      "precision=", PrecisionName(learner_->precision()), " threads=", threads_,
      " batch=", PassesText(batch_, step_rows_), " collective=",
      gang_->group() == nullptr ? "none" : TransportName(gang_->group()->transport()),
      " recompute=", recompute_ ? "on" : "off",
      pretrained_.empty() ? "" : " pretrained=", pretrained_, " effective_batch=", GangStepRows(),
      " loader_threads=",
      learner_->loader_threads() == 0 ? "none" : absl::StrCat(learner_->loader_threads()),
      cuda_ == nullptr ? "" : " ", cuda_ == nullptr ? "" : cuda_->Versions());
}

void Trainer::SendStarted() {
  rank_protocol::Started started;
  started.attempt = train_.attempt;
  started.parameters = TotalSize(learner_->layout());
  started.precision = std::string(PrecisionName(learner_->precision()));
  started.batch = static_cast<int>(batch_);
  started.resolved_settings = ResolvedSettings();
  started.steps_per_epoch = StepsPerEpoch();
  started.first_step = step_;
  started.start_epoch = static_cast<int>(epoch_);
  sink_.Send(started);
}

}  // namespace traind
