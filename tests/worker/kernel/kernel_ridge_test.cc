#include "worker/kernel/kernel_ridge.h"

#include <absl/types/span.h>
#include <gmock/gmock.h>

#include <cmath>
#include <numeric>
#include <vector>

#include "worker/data/random.h"

namespace traind {
namespace {

using ::testing::HasSubstr;

// Rows and targets of the program that made the numbers of scikit-learn below.
KernelTask Waves() {
  KernelTask task;
  task.rows = {12, 3, {}};
  double sum = 0;
  for (int i = 0; i < 12; ++i) {
    for (int k = 0; k < 3; ++k) {
      task.rows.values.push_back(
          static_cast<float>(std::sin(1.0 + 3 * i * 3 + 3 * k + 0.5 * i * k)));
    }
    task.targets.push_back(std::cos(0.7 * i) + 0.1 * i);
    sum += task.targets.back();
  }
  task.mean = {sum / 12};
  return task;
}

KernelRows Asked() {
  KernelRows rows = {4, 3, {}};
  for (int j = 0; j < 4; ++j) {
    for (int k = 0; k < 3; ++k) rows.values.push_back(static_cast<float>(0.1 * j - 0.2 * k));
  }
  return rows;
}

KernelTask Classes(int64_t rows, uint64_t seed) {
  Random random(seed);
  KernelTask task;
  task.rows = {rows, 4, {}};
  task.outputs = 3;
  task.classes = true;
  task.mean.assign(3, 0);
  for (int64_t i = 0; i < rows; ++i) {
    double sum = 0;
    for (int k = 0; k < 4; ++k) {
      task.rows.values.push_back(static_cast<float>(random.Normal()));
      sum += task.rows.values.back();
    }
    const int own = sum < -1 ? 0 : sum < 1 ? 1 : 2;
    for (int c = 0; c < 3; ++c) {
      task.targets.push_back(c == own);
      task.mean[static_cast<size_t>(c)] += (c == own) / static_cast<double>(rows);
    }
  }
  return task;
}

KernelTask Without(const KernelTask& task, int64_t row) {
  KernelTask rest = task;
  const auto cut = [row](auto& values, int64_t width) {
    const auto begin = values.begin() + row * width;
    values.erase(begin, begin + width);
  };
  cut(rest.rows.values, task.rows.width);
  cut(rest.targets, task.outputs);
  --rest.rows.rows;
  return rest;
}

TEST(KernelRidgeTest, EqualsScikitLearn) {
  const KernelTask task = Waves();
  const auto fit = FitKernel(task, 0.5, 0.1);
  ASSERT_TRUE(fit.ok()) << fit.status();
  const std::vector<double> coefficients = {
      -0.23179943646820508, -0.13235341455878571, -1.1868523163304814, -2.7118047440649486,
      -4.290709469510777,   -5.301591482669772,   -3.679836436930834,  1.4754555227588588,
      5.097197700843529,    5.222123615071217,    3.8159835141604144,  1.35963864217633};
  ASSERT_EQ(fit->coefficients.size(), coefficients.size());
  for (size_t i = 0; i < coefficients.size(); ++i) {
    EXPECT_NEAR(fit->coefficients[i], coefficients[i], 1e-9) << i;
  }
  std::vector<float> answers(4);
  PredictKernel(task, *fit, Asked(), absl::MakeSpan(answers));
  const double wanted[] = {1.1955914567522363, 1.1017969820734315, 0.9912482453123737,
                           0.8676629394122692};
  for (size_t i = 0; i < 4; ++i) EXPECT_FLOAT_EQ(answers[i], static_cast<float>(wanted[i]));
}

// More rows than are solved for at once.
TEST(KernelRidgeTest, AnswersWithoutARowAreThoseOfAModelThatNeverSawIt) {
  KernelTask task = Classes(150, 7);
  task.classes = false;  // values, before softmax
  std::vector<double> left_out;
  ASSERT_TRUE(FitKernel(task, 0.3, 0.2, &left_out).ok());
  for (const int64_t row : {0, 63, 64, 127, 128, 149}) {
    const KernelTask rest = Without(task, row);
    const auto fit = FitKernel(rest, 0.3, 0.2);
    ASSERT_TRUE(fit.ok()) << fit.status();
    const auto begin = task.rows.values.begin() + row * 4;
    std::vector<float> answers(3);
    PredictKernel(rest, *fit, {1, 4, {begin, begin + 4}}, absl::MakeSpan(answers));
    for (size_t c = 0; c < 3; ++c) {
      EXPECT_NEAR(left_out[static_cast<size_t>(row) * 3 + c], answers[c], 1e-5) << row;
    }
  }
}

TEST(KernelRidgeTest, ProbabilitiesCountAsTheWeightsOfTheClassesSay) {
  KernelTask task = Classes(120, 3);
  const auto fit = FitKernel(task, 0.3, 0.2);
  ASSERT_TRUE(fit.ok()) << fit.status();
  std::vector<float> alike(360), weighted(360);
  PredictKernel(task, *fit, task.rows, absl::MakeSpan(alike));
  task.class_weights = {4, 1, 0.5};
  EXPECT_EQ(FitKernel(task, 0.3, 0.2)->coefficients, fit->coefficients);
  PredictKernel(task, *fit, task.rows, absl::MakeSpan(weighted));
  for (size_t i = 0; i < 360; i += 3) {
    const float sum = 4 * alike[i] + alike[i + 1] + 0.5f * alike[i + 2];
    EXPECT_NEAR(weighted[i], 4 * alike[i] / sum, 1e-5);
    EXPECT_NEAR(weighted[i + 2], 0.5f * alike[i + 2] / sum, 1e-5);
  }
}

TEST(KernelRidgeTest, ProbabilitiesHaveTheTemperatureThatFitsLeftOutRowsBest) {
  const KernelTask task = Classes(120, 3);
  std::vector<double> left_out;
  const auto fit = FitKernel(task, 0.3, 0.2, &left_out);
  ASSERT_TRUE(fit.ok()) << fit.status();
  const auto loss = [&](double temperature) {
    double sum = 0;
    for (size_t i = 0; i < 120; ++i) {
      double total = 0, own = 0;
      for (size_t c = 0; c < 3; ++c) {
        const double power = std::exp(temperature * left_out[3 * i + c]);
        total += power;
        own += task.targets[3 * i + c] * power;
      }
      sum -= std::log(own / total);
    }
    return sum;
  };
  EXPECT_GT(fit->temperature, 1);
  for (const double other : {0.5, 0.9, 0.99, 1.01, 1.1, 2.0}) {
    EXPECT_LT(loss(fit->temperature), loss(other * fit->temperature)) << other;
  }
  std::vector<float> answers(360);
  PredictKernel(task, *fit, task.rows, absl::MakeSpan(answers));
  int right = 0;
  for (size_t i = 0; i < 360; i += 3) {
    EXPECT_NEAR(answers[i] + answers[i + 1] + answers[i + 2], 1, 1e-6);
    const size_t most = answers[i] > std::max(answers[i + 1], answers[i + 2]) ? 0
                        : answers[i + 1] > answers[i + 2]                     ? 1
                                                                              : 2;
    right += task.targets[i + most] == 1;
  }
  EXPECT_GT(right, 100);
}

TEST(KernelRidgeTest, RowsThatAreAlikeNeedAnAlpha) {
  KernelTask task = Waves();
  std::copy_n(task.rows.values.begin(), 3, task.rows.values.begin() + 3);
  EXPECT_THAT(FitKernel(task, 0.5, 0).status().message(), HasSubstr("too much alike for alpha 0"));
  EXPECT_TRUE(FitKernel(task, 0.5, 1e-6).ok());
}

TEST(KernelRidgeTest, TheMedianIsThatOfDifferentRows) {
  EXPECT_EQ(MedianSquaredDistance({3, 1, {0, 1, 4}}), 9);
  EXPECT_EQ(MedianSquaredDistance({4, 1, {2, 2, 2, 5}}), 9);
  EXPECT_EQ(MedianSquaredDistance({3, 2, {1, 1, 1, 1, 1, 1}}), 1);
  EXPECT_EQ(MedianSquaredDistance({1, 1, {3}}), 1);
  // Of very many pairs some are taken: the mean squared distance of two normal numbers is 2.
  Random random(1);
  KernelRows many = {2000, 16, {}};
  for (int i = 0; i < 2000 * 16; ++i) many.values.push_back(static_cast<float>(random.Normal()));
  EXPECT_NEAR(MedianSquaredDistance(many), 2 * 16, 2);
}

}  // namespace
}  // namespace traind
