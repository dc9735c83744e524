#include "worker/inference/floor_rows_model.h"

#include <numeric>
#include <vector>

#include "common/base/status_macros.h"

namespace traind {

absl::Status FloorRowsModel::Predict(const LaterRows& rows, int64_t begin, int64_t end,
                                     absl::Span<float> out) {
  // Texts are counted from the block's first row on, so the pointers begin there, too.
  const auto count = static_cast<size_t>(end - begin);
  FloorRows block;
  for (const float* const numbers : rows.numbers) {
    block.numbers.push_back(numbers == nullptr ? nullptr : numbers + begin);
  }
  for (const int32_t* const codes : rows.codes) {
    block.codes.push_back(codes == nullptr ? nullptr : codes + begin);
  }
  NgramCounts ngrams;
  if (model_.most_text_bytes > 0) {
    for (size_t i = 0; i < count; ++i) {
      ngrams.Add(rows.texts[static_cast<size_t>(begin) + i], model_.most_text_bytes);
    }
    block.ngrams = &ngrams;
  }
  std::vector<size_t> indices(count);
  std::iota(indices.begin(), indices.end(), size_t{0});
  model_.Predict(layout_, block, indices, out);
  return absl::OkStatus();
}

absl::Status SeriesFloorRowsModel::Predict(const LaterRows&, int64_t, int64_t, absl::Span<float>) {
  return absl::InternalError("a forecast needs the history of its series");
}

absl::Status VolumeFloorRowsModel::Predict(const LaterRows&, int64_t, int64_t, absl::Span<float>) {
  return absl::InternalError("the floor of volumes needs their voxels");
}

absl::Status VolumeFloorRowsModel::PredictVolumes(std::shared_ptr<const VolumeSet> volumes,
                                                  const TakeValues& take,
                                                  const std::function<absl::Status()>& between) {
  return AnswerVolumes(*volumes, model_.Label(), [&](absl::Span<const float> slice) {
    RETURN_IF_ERROR(take(slice));
    return between();
  });
}

}  // namespace traind
