#include "common/data/volume/sliding_window.h"

#include <absl/strings/str_cat.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "common/data/table/npy.h"
#include "common/data/volume/overlap.h"
#include "common/metrics/metrics.h"

namespace traind {
namespace {

// A value that depends only on the voxel's place, so that every patch predicts the same.
float ValueAt(int64_t z, int64_t y, int64_t x) {
  return std::sin(static_cast<float>(z * 31 + y * 7 + x)) * 0.5f + 0.5f;
}

struct Answer {
  std::vector<float> values;
  int64_t most_slices = 0, calls = 0;
};

// `of_patch` is added to the prediction at a place within a patch.
template <class F>
Answer Predict(const SlidingWindow& window, const F& value) {
  Answer answer;
  const Extent3 patch = window.patch;
  const auto predict = [&](absl::Span<const Extent3> begins, absl::Span<float> out) {
    ++answer.calls;
    EXPECT_LE(static_cast<int64_t>(begins.size()), window.at_once);
    size_t at = 0;
    for (const Extent3& begin : begins) {
      for (int64_t z = 0; z < patch[0]; ++z) {
        for (int64_t y = 0; y < patch[1]; ++y) {
          for (int64_t x = 0; x < patch[2]; ++x) {
            out[at++] = value(begin, Extent3{begin[0] + z, begin[1] + y, begin[2] + x});
          }
        }
      }
    }
    return absl::OkStatus();
  };
  const auto take = [&](int64_t z, int64_t slices, absl::Span<const float> values) {
    const int64_t plane = window.volume[1] * window.volume[2];
    EXPECT_EQ(static_cast<int64_t>(answer.values.size()), z * plane);
    EXPECT_EQ(static_cast<int64_t>(values.size()), slices * plane);
    answer.most_slices = std::max(answer.most_slices, slices);
    answer.values.insert(answer.values.end(), values.begin(), values.end());
    return absl::OkStatus();
  };
  EXPECT_TRUE(PredictBySlidingWindow(window, predict, take).ok());
  return answer;
}

TEST(SlidingWindowTest, EveryVoxelIsAnsweredInItsPlace) {
  for (const SlidingWindow& window :
       {SlidingWindow{{17, 20, 9}, {8, 8, 4}, 3}, SlidingWindow{{5, 6, 7}, {8, 8, 8}, 1},
        SlidingWindow{{8, 9, 64}, {8, 16, 16}, 2}, SlidingWindow{{3, 3, 3}, {1, 1, 1}, 4}}) {
    const Answer answer = Predict(
        window, [](const Extent3&, const Extent3& at) { return ValueAt(at[0], at[1], at[2]); });
    ASSERT_EQ(static_cast<int64_t>(answer.values.size()), Volume(window.volume));
    size_t i = 0;
    for (int64_t z = 0; z < window.volume[0]; ++z) {
      for (int64_t y = 0; y < window.volume[1]; ++y) {
        for (int64_t x = 0; x < window.volume[2]; ++x) {
          ASSERT_NEAR(answer.values[i++], ValueAt(z, y, x), 1e-6);
        }
      }
    }
    EXPECT_LE(answer.most_slices, window.patch[0]);
  }
}

TEST(SlidingWindowTest, WhereOnePatchCoversTheVolumeItsAnswerIsTheAnswer) {
  const Answer answer = Predict({{6, 6, 6}, {6, 6, 6}, 1}, [](const Extent3&, const Extent3& at) {
    return ValueAt(at[0], 2, 3);
  });
  EXPECT_EQ(answer.calls, 1);
  for (size_t i = 0; i < answer.values.size(); ++i) {
    EXPECT_NEAR(answer.values[i], ValueAt(static_cast<int64_t>(i) / 36, 2, 3), 1e-6);
  }
}

// Compares with the definition, voxel by voxel.
TEST(SlidingWindowTest, OverlappingPatchesAreAddedByTheirWeights) {
  const SlidingWindow window{{10, 7, 6}, {4, 4, 4}, 2};
  const auto value = [](const Extent3& begin, const Extent3& at) {
    return ValueAt(begin[0] * 3 + at[0], begin[1] * 5 + at[1], begin[2] * 2 + at[2]);
  };
  const std::vector<float> weights = GaussianWeights(window.patch);
  std::vector<double> sum(420), weight(420);
  for (const int64_t z : WindowBegins(10, 4, 2)) {
    for (const int64_t y : WindowBegins(7, 4, 2)) {
      for (const int64_t x : WindowBegins(6, 4, 2)) {
        for (int64_t i = 0; i < 64; ++i) {
          const Extent3 at{z + i / 16, y + i / 4 % 4, x + i % 4};
          const auto cell = static_cast<size_t>((at[0] * 7 + at[1]) * 6 + at[2]);
          const double w = weights[static_cast<size_t>(i)];
          sum[cell] += w * value({z, y, x}, at);
          weight[cell] += w;
        }
      }
    }
  }
  const Answer answer = Predict(window, value);
  for (size_t i = 0; i < sum.size(); ++i) EXPECT_NEAR(answer.values[i], sum[i] / weight[i], 1e-6);
}

// Each voxel has two values; the second one is twice the first.
TEST(SlidingWindowTest, SeveralValuesOfAVoxelStandSideBySide) {
  SlidingWindow window{{9, 7, 6}, {4, 4, 4}, 2};
  const auto value = [](const Extent3& begin, const Extent3& at) {
    return ValueAt(begin[0] * 3 + at[0], begin[1] * 5 + at[1], begin[2] * 2 + at[2]);
  };
  const std::vector<float> one = Predict(window, value).values;
  window.values = 2;
  std::vector<float> two;
  const auto predict = [&](absl::Span<const Extent3> begins, absl::Span<float> out) {
    for (size_t i = 0; i < begins.size(); ++i) {
      for (int64_t k = 0; k < 64; ++k) {
        const Extent3& b = begins[i];
        const float v = value(b, {b[0] + k / 16, b[1] + k / 4 % 4, b[2] + k % 4});
        out[i * 128 + static_cast<size_t>(k)] = v;
        out[i * 128 + 64 + static_cast<size_t>(k)] = 2 * v;
      }
    }
    return absl::OkStatus();
  };
  const auto take = [&](int64_t, int64_t slices, absl::Span<const float> values) {
    EXPECT_EQ(static_cast<int64_t>(values.size()), slices * 7 * 6 * 2);
    two.insert(two.end(), values.begin(), values.end());
    return absl::OkStatus();
  };
  ASSERT_TRUE(PredictBySlidingWindow(window, predict, take).ok());
  ASSERT_EQ(two.size(), 2 * one.size());
  for (size_t i = 0; i < one.size(); ++i) {
    EXPECT_EQ(two[2 * i], one[i]);
    EXPECT_EQ(two[2 * i + 1], 2 * one[i]);
  }
}

TEST(SlidingWindowTest, PatchesBeginEvenlyAndEndWhereTheAxisDoes) {
  EXPECT_EQ(WindowBegins(64, 32, 16), (std::vector<int64_t>{0, 16, 32}));
  EXPECT_EQ(WindowBegins(65, 32, 16), (std::vector<int64_t>{0, 11, 22, 33}));
  EXPECT_EQ(WindowBegins(33, 32, 16), (std::vector<int64_t>{0, 1}));
  EXPECT_EQ(WindowBegins(32, 32, 16), (std::vector<int64_t>{0}));
  EXPECT_EQ(WindowBegins(20, 32, 16), (std::vector<int64_t>{0}));
}

TEST(SlidingWindowTest, WeightsFallFromThePatchsMiddle) {
  const std::vector<float> weights = GaussianWeights({1, 1, 9});
  EXPECT_EQ(weights[4], 1.0f);
  // exp(-d^2 / 2) for a distance of one voxel and a standard deviation of 9/8.
  EXPECT_NEAR(weights[3], std::exp(-0.5 * 64.0 / 81.0), 1e-6);
  EXPECT_EQ(weights[3], weights[5]);
  EXPECT_LT(weights[0], weights[1]);
  EXPECT_GE(weights[0], 1e-3f);
}

MaskFunction Of(const char* metric) { return MetricByName(metric)->kind().of_masks; }

std::vector<uint8_t> Labels(absl::Span<const float> values, int64_t count) {
  std::vector<uint8_t> labels(values.size() / static_cast<size_t>(count));
  LabelsOf(values, count, absl::MakeSpan(labels));
  return labels;
}

TEST(OverlapTest, DiceAndIntersectionOverUnionAreThoseOfTheirDefinitions) {
  MaskScore overlap(1);
  overlap.Add(Labels({0.9f, 0.5f, 0.4f, 0.2f}, 1), {1, 0, 1, 0});
  EXPECT_DOUBLE_EQ(overlap.Score(Of("dice")), 0.5);
  EXPECT_DOUBLE_EQ(overlap.Score(Of("iou")), 1.0 / 3);
  overlap.Add(Labels({0.7f, 0.1f}, 1), {1, 0});  // both 2, predicted 3, wanted 3
  EXPECT_DOUBLE_EQ(overlap.Score(Of("dice")), 2.0 / 3);
  EXPECT_DOUBLE_EQ(overlap.Score(Of("iou")), 0.5);
  EXPECT_DOUBLE_EQ(MaskScore(1).Score(Of("dice")), 1.0);
  EXPECT_DOUBLE_EQ(MaskScore(1).Score(Of("iou")), 1.0);
  MaskScore missed(1);
  missed.Add(Labels({0.1f}, 1), {1});
  EXPECT_DOUBLE_EQ(missed.Score(Of("dice")), 0.0);
}

TEST(OverlapTest, OfSeveralClassesTheyAreThoseOfNumpy) {
  const auto golden = [](const char* name) {
    auto array =
        ReadNpyFloat(absl::StrCat("tests/common/data/volume/golden/scores_", name, ".npy"));
    EXPECT_TRUE(array.ok()) << array.status();
    return *std::move(array);
  };
  const Array<float> values = golden("values"), masks = golden("masks"),
                     expected = golden("expected");
  const auto voxels = static_cast<size_t>(masks.shape[1]);
  for (size_t i = 0; i < static_cast<size_t>(masks.shape[0]); ++i) {
    std::vector<uint8_t> mask;
    for (size_t k = 0; k < voxels; ++k) {
      mask.push_back(static_cast<uint8_t>(masks.values[i * voxels + k]));
    }
    MaskScore score(4);
    const size_t half = voxels / 2;  // the parts are added one by one
    const auto of_case = absl::MakeConstSpan(values.values).subspan(i * voxels * 4, voxels * 4);
    score.Add(Labels(of_case.first(half * 4), 4), absl::MakeConstSpan(mask).first(half));
    score.Add(Labels(of_case.subspan(half * 4), 4), absl::MakeConstSpan(mask).subspan(half));
    EXPECT_FLOAT_EQ(static_cast<float>(score.Score(Of("dice"))), expected.values[2 * i]) << i;
    EXPECT_FLOAT_EQ(static_cast<float>(score.Score(Of("iou"))), expected.values[2 * i + 1]) << i;
  }
}

}  // namespace
}  // namespace traind
