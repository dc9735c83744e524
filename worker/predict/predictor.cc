#include "worker/predict/predictor.h"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "common/base/durable_file.h"
#include "common/base/status_macros.h"
#include "common/data/table/npy.h"
#include "worker/data/known_targets.h"
#include "worker/data/volume_source.h"

namespace traind {
namespace {

constexpr int64_t kEncodeRows = 16384;

void Append(const EncodedRows& from, EncodedRows& to) {
  to.rows += from.rows;
  to.numeric.insert(to.numeric.end(), from.numeric.begin(), from.numeric.end());
  to.codes.insert(to.codes.end(), from.codes.begin(), from.codes.end());
}

EncodedRows Part(const EncodedRows& rows, int64_t begin, int64_t end) {
  EncodedRows part;
  part.rows = end - begin;
  const auto cut = [&](const auto& all, auto& some) {
    const auto width = static_cast<int64_t>(all.size()) / std::max<int64_t>(1, rows.rows);
    some.assign(all.begin() + begin * width, all.begin() + end * width);
  };
  cut(rows.numeric, part.numeric);
  cut(rows.codes, part.codes);
  return part;
}

// The rows of one series: its last training rows, then its test rows.
struct SeriesRows {
  int64_t train_begin = 0, train_end = 0;
  int64_t test_begin = 0, test_end = 0;
};

// The targets of the series' training rows; none if past targets are no input.
KnownTargets TrainingTargets(const RowEncoder& encoder, const SeriesRows& series, size_t outputs) {
  KnownTargets known(encoder.shape().horizon, outputs);
  if (encoder.shape().horizon == 0) return known;
  std::vector<float> targets(outputs);
  for (int64_t row = series.train_begin; row < series.train_end; ++row) {
    for (size_t k = 0; k < outputs; ++k) {
      targets[k] = encoder.table().TargetValue(Split::kTrain, k)[static_cast<size_t>(row)];
    }
    known.Append(targets);
  }
  return known;
}

// Whether all targets of the series' test rows count as known (SampleShape::rolling).
bool AllTargetsKnown(const RowEncoder& encoder, const SeriesRows& series, size_t outputs) {
  if (!encoder.shape().rolling || !encoder.table().schema().test_has_target) return false;
  for (size_t k = 0; k < outputs; ++k) {
    const auto targets = encoder.table().TargetValue(Split::kTest, k);
    if (!std::all_of(targets.begin() + series.test_begin, targets.begin() + series.test_end,
                     [](float target) { return std::isfinite(target); })) {
      return false;
    }
  }
  return true;
}

// Sets `targets`, the answer for a test row of the table, to what counts as known of it.
void TakeKnown(const RowEncoder& encoder, int64_t row, absl::Span<float> targets) {
  if (!encoder.shape().rolling || !encoder.table().schema().test_has_target) return;
  for (size_t k = 0; k < targets.size(); ++k) {
    const float known = encoder.table().TargetValue(Split::kTest, k)[static_cast<size_t>(row)];
    if (std::isfinite(known)) targets[k] = known;
  }
}

// out: [test rows of the series, outputs].
absl::Status PredictSeries(Learner& learner, const RowEncoder& encoder, Weights which,
                           const SeriesRows& series, size_t outputs, absl::Span<float> out) {
  const int64_t history = encoder.shape().history();
  const int64_t trained = series.train_end - series.train_begin;
  const int64_t recent = std::min(history, trained);
  EncodedRows rows = encoder.Unknown(history - recent);
  Append(encoder.Encode(Split::kTrain, series.train_end - recent, series.train_end), rows);
  Append(encoder.Encode(Split::kTest, series.test_begin, series.test_end), rows);
  const int64_t count = series.test_end - series.test_begin;
  KnownTargets known = TrainingTargets(encoder, series, outputs);
  std::vector<float> targets(outputs);
  const auto take = [&](int64_t row) {
    TakeKnown(encoder, series.test_begin + row, absl::MakeSpan(targets));
    known.Append(targets);
    encoder.SetTargets(targets, row + history, rows);
  };
  // For `horizon` rows at a time all needed past targets are known.
  const int64_t horizon = encoder.shape().horizon;
  const bool all_known = horizon == 0 || AllTargetsKnown(encoder, series, outputs);
  for (int64_t row = 0; horizon > 0 && all_known && row < count; ++row) take(row);
  const int64_t step = std::min(kEncodeRows, all_known ? count : horizon);
  for (int64_t begin = 0; begin < count; begin += step) {
    const int64_t end = std::min(count, begin + step);
    const auto to = out.subspan(static_cast<size_t>(begin) * outputs,
                                static_cast<size_t>(end - begin) * outputs);
    RETURN_IF_ERROR(learner.Predict(which, Part(rows, begin, end + history), to));
    if (horizon == 0) continue;
    for (int64_t row = begin; row < end; ++row) {
      const auto answer = to.subspan(static_cast<size_t>(row - begin) * outputs, outputs);
      encoder.ToTargets(known.Before(trained + row), answer);
      if (all_known) continue;
      targets.assign(answer.begin(), answer.end());
      take(row);
    }
  }
  return absl::OkStatus();
}

absl::Status PredictAllSeries(Learner& learner, const RowEncoder& encoder, Weights which,
                              size_t outputs, absl::Span<float> out) {
  const auto train_ends = encoder.table().SeriesEnds(Split::kTrain);
  const auto test_ends = encoder.table().SeriesEnds(Split::kTest);
  SeriesRows series;
  for (size_t s = 0; s < test_ends.size(); ++s) {
    series.train_end = static_cast<int64_t>(train_ends[s]);
    series.test_end = static_cast<int64_t>(test_ends[s]);
    const auto begin = static_cast<size_t>(series.test_begin) * outputs;
    const auto size = static_cast<size_t>(series.test_end - series.test_begin) * outputs;
    RETURN_IF_ERROR(
        PredictSeries(learner, encoder, which, series, outputs, out.subspan(begin, size)));
    series.train_begin = series.train_end;
    series.test_begin = series.test_end;
  }
  return absl::OkStatus();
}

// Predicts the rows begin..end-1. out: [end - begin, outputs].
absl::Status PredictRows(Learner& learner, const RowEncoder& encoder,
                         const std::shared_ptr<const MediaSource>& media, Weights which,
                         int64_t begin, int64_t end, absl::Span<float> out) {
  if (begin == end) return absl::OkStatus();
  EncodedRows part = encoder.Encode(Split::kTest, begin, end);
  part.media = media;
  part.media_begin = begin;
  return learner.Predict(which, part, out);
}

absl::StatusOr<TestAnswers> PredictTestVolumes(Learner& learner, const VolumeSource& volumes,
                                               Weights which, const std::string& file) {
  TestAnswers answers;
  if (volumes.volumes() == 0) return answers;
  ASSIGN_OR_RETURN(const std::unique_ptr<DurableWriter> out, DurableWriter::Create(file));
  const VolumeSet& set = volumes.set();
  RETURN_IF_ERROR(out->Append(NpyHeaderText("<f4", {set.TestVoxels(), set.values()})));
  RETURN_IF_ERROR(learner.PredictVolumes(which, volumes, [&](absl::Span<const float> values) {
    return out->Append(
        {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)});
  }));
  ASSIGN_OR_RETURN(const FileDigest digest, out->Commit());
  answers.file = file;
  answers.sha256 = digest.sha256;
  return answers;
}

}  // namespace

absl::StatusOr<TestAnswers> PredictTest(Learner& learner, const RowEncoder& encoder,
                                        std::shared_ptr<const MediaSource> media, Weights which,
                                        int outputs, const std::string& file, Group* group) {
  if (media != nullptr && media->volumes_source() != nullptr) {
    return PredictTestVolumes(learner, *media->volumes_source(), which, file);
  }
  TestAnswers answers;
  std::vector<float>& out = answers.values;
  const int64_t rows = encoder.table().rows(Split::kTest);
  const int64_t world = group == nullptr ? 1 : group->world_size();
  const int64_t rank = group == nullptr ? 0 : group->rank();
  if (rank == 0) out.resize(static_cast<size_t>(rows * outputs));
  if (encoder.shape().history() > 0) {
    RETURN_IF_ERROR(PredictAllSeries(learner, encoder, which, static_cast<size_t>(outputs),
                                     absl::MakeSpan(out)));
    return answers;
  }
  // The ranks meet after each block, of which each has predicted a part; the sum has all.
  std::vector<float> shared;
  for (int64_t begin = 0; begin < rows; begin += world * kEncodeRows) {
    const int64_t count = std::min(rows - begin, world * kEncodeRows);
    const auto values = [outputs](int64_t n) { return static_cast<size_t>(n * outputs); };
    absl::Span<float> block;
    if (rank == 0) {
      block = absl::MakeSpan(out).subspan(values(begin), values(count));
    } else {
      shared.assign(values(count), 0.0f);
      block = absl::MakeSpan(shared);
    }
    const int64_t from = count * rank / world, to = count * (rank + 1) / world;
    RETURN_IF_ERROR(PredictRows(learner, encoder, media, which, begin + from, begin + to,
                                block.subspan(values(from), values(to - from))));
    if (group != nullptr) RETURN_IF_ERROR(group->Sum(block));
  }
  return answers;
}

bool CanShareTest(const RowEncoder& encoder, const MediaSource* media) {
  const bool volumes = media != nullptr && media->volumes_source() != nullptr;
  return encoder.shape().history() == 0 && !volumes;
}

}  // namespace traind
