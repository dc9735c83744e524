// A Learner's body and head: how each is updated, and a body that stays as it is.
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cmath>

#include "common/base/status_macros.h"
#include "worker/learner/learner_impl.h"
#include "worker/learner/media_inputs.h"

namespace traind {

// Neighbours that are updated in one way are one part; gaps belong to the part before them.
std::vector<OptimizerPart> Learner::Impl::OptimizerParts() const {
  const ParameterLayout& layout = parameters.layout();
  const int64_t size = parameters.trained().numel();
  const int64_t head = parameters.layers();  // the depth of the head
  std::vector<OptimizerPart> parts;
  for (size_t i = 0; i < layout.size(); ++i) {
    const int64_t begin = parameters.offsets()[i];
    if (begin >= size) continue;  // a buffer
    OptimizerPart part;
    part.decays = options.decay_norms || layout[i].decays;
    if (layout[i].depth != kHeadDepth) {
      part.layer = options.thaws_by_layer ? layout[i].depth : 0;
      part.rate = std::pow(options.layer_decay, static_cast<double>(head - layout[i].depth));
    }
    const bool alike = !parts.empty() && parts.back().rate == part.rate &&
                       parts.back().decays == part.decays && parts.back().layer == part.layer;
    if (alike) continue;
    part.begin = begin;
    if (!parts.empty()) parts.back().end = begin;
    parts.push_back(part);
  }
  if (!parts.empty()) parts.back().end = size;
  return parts;
}

absl::Status Learner::Impl::TrainLayers(int64_t count) {
  const int64_t layers = parameters.layers();
  const int64_t first = layers - std::min(count, layers);  // that is trained
  if (first == fixed_below) return absl::OkStatus();
  if (model->body() == nullptr) {
    return absl::InvalidArgumentError("train.freeze: this network has no body apart from its head");
  }
  if (first > 0 && first < layers && !options.thaws_by_layer) {
    return absl::InvalidArgumentError("learner: layers of the body are not told apart");
  }
  fixed_below = first;
  frozen = first == layers;
  features.Clear();
  if (frozen) ResetFeatures();
  parameters.TrainFrom(first);
  optimizer->TrainFrom(options.thaws_by_layer ? first : std::min<int64_t>(first, 1));
  reducer.reset();  // it waits for the gradients of all parameters that it knows
  ChooseBackward();
  return absl::OkStatus();
}

void Learner::Impl::ResetFeatures() {
  features.Reset(rows->rows(), model->body()->body_width(), device);
}

Inputs Learner::Impl::ColumnsOf(const ResidentRows& from, absl::Span<const int32_t> part) const {
  return from.GatherInputs(ToDevice(std::vector<int32_t>(part.begin(), part.end()),
                                    {static_cast<int64_t>(part.size())}, from.place()));
}

absl::StatusOr<Inputs> Learner::Impl::InputsOf(const ResidentRows& from,
                                               absl::Span<const int32_t> part,
                                               MediaBatch& loaded) const {
  Inputs inputs = ColumnsOf(from, part);
  if (media != nullptr) {
    MediaRequest request;
    request.rows = part;
    RETURN_IF_ERROR(media->Load(request, loaded));
    AttachMedia(TensorsOf(loaded, HasTexts(options.shape), options.cuda), inputs);
  }
  return inputs;
}

// [rows, width] float32, by the weights that stand now; the body of the best weights and of their
// average is the same while it is frozen.
absl::StatusOr<at::Tensor> Learner::Impl::FeaturesOf(absl::Span<const int32_t> wanted) {
  const at::NoGradGuard no_gradients;
  const std::vector<int32_t> missing = features.Kept()
                                           ? features.Missing(wanted)
                                           : std::vector<int32_t>(wanted.begin(), wanted.end());
  std::vector<at::Tensor> made;
  MediaBatch loaded;
  const auto make = [&](int64_t begin, int64_t count) -> absl::Status {
    const auto part = absl::MakeConstSpan(missing).subspan(static_cast<size_t>(begin),
                                                           static_cast<size_t>(count));
    ASSIGN_OR_RETURN(const Inputs inputs, InputsOf(*rows, part, loaded));
    const at::Tensor body =
        model->body()->Body(parameters.tensors(), inputs, /*training=*/false).to(at::kFloat);
    if (features.Kept()) {
      features.Put(part, body);
    } else {
      made.push_back(body);
    }
    return absl::OkStatus();
  };
  RETURN_IF_ERROR(ScoreInBlocks(static_cast<int64_t>(missing.size()), make));
  if (features.Kept()) return features.Get(wanted);
  if (!made.empty()) return at::cat(made);
  return at::zeros({0, model->body()->body_width()}, parameters.flat().options());
}

absl::Status Learner::Impl::ScoreFeatures(Weights which, absl::Span<const int32_t> index,
                                          float* out) {
  const auto score = [&](int64_t begin, int64_t count) -> absl::Status {
    const at::NoGradGuard no_gradients;
    const auto part = index.subspan(static_cast<size_t>(begin), static_cast<size_t>(count));
    ASSIGN_OR_RETURN(const at::Tensor body, FeaturesOf(part));
    const at::Tensor output =
        model->body()->Head(ViewsFor(which), ColumnsOf(*rows, part), body, /*training=*/false);
    Answer(output, out + begin * options.shape.outputs);
    return absl::OkStatus();
  };
  return ScoreInBlocks(static_cast<int64_t>(index.size()), score);
}

}  // namespace traind
