// Losses, their gradients by hand, and answers, number by number.
#include "worker/model/objective/objective.h"

#include <ATen/ops/poisson_nll_loss.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/xlogy.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <vector>

#include "worker/model/objective/objective_gradient.h"
#include "worker/model/objective/objective_loss.h"

namespace traind {
namespace {

const std::vector<double> kMean = {3}, kScale = {5};

Objective Of(LossKind loss) {
  Objective objective;
  objective.loss = loss;
  objective.quantile = 0.9;
  objective.tweedie_power = 1.4;
  return objective;
}

at::Tensor Column(const std::vector<float>& values) {
  return at::tensor(values).view({static_cast<int64_t>(values.size()), 1});
}

struct Gradients {
  double loss = 0;  // the mean
  std::vector<float> slopes;
};

Gradients ByAutograd(const Objective& objective, const std::vector<float>& outputs,
                     const std::vector<float>& wanted) {
  const ObjectiveLoss loss(objective, kMean, kScale, c10::Device(c10::kCPU));
  const at::Tensor output = Column(outputs).requires_grad_();
  const at::Tensor mean = loss.Loss(output, Column(wanted), at::Reduction::Mean);
  mean.backward();
  Gradients gradients{mean.item<double>(), {}};
  const at::Tensor slopes = output.grad().contiguous();
  gradients.slopes.assign(slopes.const_data_ptr<float>(),
                          slopes.const_data_ptr<float>() + slopes.numel());
  return gradients;
}

Gradients ByHand(const Objective& objective, std::vector<float> outputs,
                 const std::vector<float>& wanted) {
  Targets targets;
  targets.values = wanted.data();
  ObjectiveGradient gradient(objective, kMean, kScale, targets, 1);
  std::vector<int32_t> rows(wanted.size());
  std::iota(rows.begin(), rows.end(), 0);
  const double sum =
      gradient.Run(rows.data(), static_cast<int64_t>(rows.size()), 1, outputs.data());
  return {sum / static_cast<double>(rows.size()), outputs};
}

// Near 0, and so far out that the exponential function itself overflows.
const std::vector<float> kOutputs = {-0.5f, 0,  0.25f, 1,   2.5f, -3,  5,
                                     29,    31, 90,    1e4, -40,  -90, -1e4};
const std::vector<float> kWanted = {0, 1, 0.25f, 4, 0, 0.01f, 100, 3, 0, 1, 7, 0, 2, 1};

TEST(ObjectiveTest, GradientsByHandAreThoseOfAutograd) {
  for (const LossKind kind : {LossKind::kMse, LossKind::kMae, LossKind::kHuber, LossKind::kSmape,
                              LossKind::kQuantile, LossKind::kPoisson, LossKind::kTweedie}) {
    const Gradients plain = ByAutograd(Of(kind), kOutputs, kWanted);
    const Gradients own = ByHand(Of(kind), kOutputs, kWanted);
    EXPECT_TRUE(std::isfinite(own.loss)) << LossName(kind);
    EXPECT_NEAR(own.loss, plain.loss, 2e-6 * std::fabs(plain.loss)) << LossName(kind);
    for (size_t i = 0; i < kOutputs.size(); ++i) {
      const float wanted = plain.slopes[i];
      EXPECT_TRUE(std::isfinite(wanted)) << LossName(kind) << " " << i;
      EXPECT_NEAR(own.slopes[i], wanted, 2e-6 * (0.1 + std::fabs(wanted)))
          << LossName(kind) << " " << i;
    }
  }
}

TEST(ObjectiveTest, ThatOfCountsIsPyTorchsLessThatOfAPerfectAnswer) {
  const std::vector<float> outputs = {-2, 0, 0.5f, 3}, wanted = {0, 1, 2.5f, 17};
  const at::Tensor y = Column(wanted);
  const double torchs = at::poisson_nll_loss(Column(outputs), y, /*log_input=*/true, /*full=*/false,
                                             1e-8, at::Reduction::Mean)
                            .item<double>();
  const double perfect = y.sub(at::xlogy(y, y)).mean().item<double>();
  EXPECT_NEAR(ByHand(Of(LossKind::kPoisson), outputs, wanted).loss, torchs - perfect, 1e-6);
  // Whoever answers perfectly has no loss and no slope.
  const Gradients none = ByHand(Of(LossKind::kPoisson), {std::log(2.5f)}, {2.5f});
  EXPECT_NEAR(none.loss, 0, 1e-6);
  EXPECT_NEAR(none.slopes[0], 0, 1e-6);
}

TEST(ObjectiveTest, ThatOfAmountsIsThatOfItsFormula) {
  const auto formula = [](double o, double y, double p) {
    return std::exp((2 - p) * o) / (2 - p) - y * std::exp((1 - p) * o) / (1 - p);
  };
  for (const double power : {1.1, 1.5, 1.9}) {
    Objective objective = Of(LossKind::kTweedie);
    objective.tweedie_power = power;
    for (const float output : {-2.0f, 0.0f, 1.5f}) {
      for (const float wanted : {0.0f, 0.5f, 12.0f}) {
        const double loss = formula(output, wanted, power);
        EXPECT_NEAR(ByHand(objective, {output}, {wanted}).loss, loss, 2e-6 * (1 + loss));
      }
    }
    EXPECT_NEAR(ByHand(objective, {std::log(7.0f)}, {7}).slopes[0], 0, 1e-5) << power;
  }
}

TEST(ObjectiveTest, TheQuantileLossWeighsErrorsBySide) {
  EXPECT_NEAR(ByHand(Of(LossKind::kQuantile), {1}, {3}).loss, 0.9 * 2, 1e-6);
  EXPECT_NEAR(ByHand(Of(LossKind::kQuantile), {3}, {1}).loss, 0.1 * 2, 1e-6);
  EXPECT_NEAR(ByHand(Of(LossKind::kQuantile), {1}, {3}).slopes[0], -0.9, 1e-6);
  EXPECT_NEAR(ByHand(Of(LossKind::kQuantile), {3}, {1}).slopes[0], 0.1, 1e-6);
}

// Either form of an answer, of a target of which the mean over the training rows is given.
std::vector<float> Answers(LossKind kind, double mean, const std::vector<float>& outputs) {
  const ObjectiveLoss loss(Of(kind), {mean}, kScale, c10::Device(c10::kCPU));
  std::vector<float> answers = outputs;
  loss.Answer(absl::MakeSpan(answers), 1);
  const at::Tensor same = loss.Answer(Column(outputs)).contiguous();
  for (size_t i = 0; i < answers.size(); ++i) {
    EXPECT_NEAR(same.const_data_ptr<float>()[i], answers[i], 1e-6 * std::fabs(answers[i]));
  }
  return answers;
}

TEST(ObjectiveTest, AnswersOfLogarithmsAreInTheTargetsUnitAndNeverNegativeNorInfinite) {
  for (const LossKind kind : {LossKind::kPoisson, LossKind::kTweedie}) {
    const std::vector<float> answers = Answers(kind, 3, {0, std::log(2.0f), -1e4f, 1e4f});
    EXPECT_FLOAT_EQ(answers[0], 3);
    EXPECT_FLOAT_EQ(answers[1], 6);
    EXPECT_EQ(answers[2], 0);
    EXPECT_GT(answers[3], 1e13f);
    EXPECT_TRUE(std::isfinite(answers[3]));
    std::vector<float> values = {0, 3, 12};
    ObjectiveLoss(Of(kind), kMean, kScale, c10::Device(c10::kCPU)).Standardise(values);
    EXPECT_EQ(values, (std::vector<float>{0, 1, 4}));
    // A fold whose training rows are all 0.
    EXPECT_FLOAT_EQ(Answers(kind, 0, {std::log(2.0f)})[0], 2);
  }
  EXPECT_FLOAT_EQ(Answers(LossKind::kQuantile, 3, {2})[0], 13);
}

}  // namespace
}  // namespace traind
