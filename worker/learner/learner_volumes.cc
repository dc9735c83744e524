// A Learner's predictions of volumes.
#include <ATen/core/grad_mode.h>
#include <ATen/ops/from_blob.h>

#include <algorithm>
#include <limits>

#include "common/base/status_macros.h"
#include "common/data/volume/answer_score.h"
#include "worker/data/volume_source.h"
#include "worker/device/guard.h"
#include "worker/learner/learner_impl.h"
#include "worker/learner/media_inputs.h"

namespace traind {

absl::Status Learner::Impl::PredictVolume(Weights which, const VolumeSource& source, int64_t row,
                                          const ReceiveSlices& take,
                                          const std::function<absl::Status()>& between) {
  constexpr int64_t kVoxelsAtOnce = 1 << 17;
  const VolumeShape& shape = source.volume(row).shape;
  SlidingWindow window;
  window.volume = {shape.depth, shape.height, shape.width};
  window.patch = source.patch();
  window.values = options.shape.outputs;
  window.at_once = std::clamp<int64_t>(
      (device.is_cuda() ? 16 : 1) * kVoxelsAtOnce / Volume(window.patch), 1, 64);
  MediaBatch loaded;
  const auto predict = [&](absl::Span<const Extent3> begins, absl::Span<float> out) {
    const int64_t answer = Volume(window.patch) * window.values;
    const auto score = [&](int64_t begin, int64_t count) {
      source.LoadPatches(
          row, begins.subspan(static_cast<size_t>(begin), static_cast<size_t>(count)), loaded);
      Inputs inputs;
      AttachMedia(TensorsOf(loaded, /*texts=*/false, options.cuda), inputs);
      Score(which, inputs, out.data() + begin * answer);
      return absl::OkStatus();
    };
    RETURN_IF_ERROR(ScoreInBlocks(static_cast<int64_t>(begins.size()), score));
    return between == nullptr ? absl::OkStatus() : between();
  };
  // No later patch reads the slices that have been answered, so they are released.
  const auto take_and_release = [&](int64_t z, int64_t slices, absl::Span<const float> answer) {
    RETURN_IF_ERROR(take(z, slices, answer));
    source.set().Release(source.volume(row), z, slices);
    return absl::OkStatus();
  };
  return PredictBySlidingWindow(window, predict, take_and_release);
}

absl::Status Learner::Impl::ScoreVolumes(Weights which, const VolumeSource& source,
                                         absl::Span<const int32_t> index, float* out) {
  const int width = source.set().row_values();
  for (const int32_t row : index) {
    AnswerScore score(source.set(), source.volume(row));
    bool finite = true;
    const auto take = [&](int64_t, int64_t, absl::Span<const float> answer) {
      finite &= std::all_of(answer.begin(), answer.end(), [](float v) { return v == v; });
      return score.Add(answer);
    };
    RETURN_IF_ERROR(PredictVolume(which, source, row, take, /*between=*/nullptr));
    RETURN_IF_ERROR(score.Finish());
    score.Read(options.mask_score, out);
    if (!finite) std::fill_n(out, width, std::numeric_limits<float>::quiet_NaN());
    out += width;
  }
  return absl::OkStatus();
}

absl::Status Learner::PredictVolumes(Weights which, const VolumeSource& source,
                                     const AnswerSink& sink,
                                     const std::function<absl::Status()>& between) {
  return Guarded([&]() -> absl::Status {
    const auto sink_slices = [&](int64_t, int64_t, absl::Span<const float> answer) {
      return sink(answer);
    };
    for (int64_t row = 0; row < source.volumes(); ++row) {
      RETURN_IF_ERROR(impl_->PredictVolume(which, source, row, sink_slices, between));
    }
    return absl::OkStatus();
  });
}

}  // namespace traind
