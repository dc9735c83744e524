#include "worker/data/target_transform.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

namespace traind {
namespace {

constexpr float kMissing = std::numeric_limits<float>::quiet_NaN();
constexpr TransformKind kLog = TransformKind::kLog, kPower = TransformKind::kYeoJohnson;

const std::vector<float> kSigned = {-9,  -4.5, -3.1, -2.2, -1.7, -1.1, -0.8, -0.3, 0.1,
                                    0.4, 0.6,  1.3,  1.9,  2.4,  3.8,  5.5,  8.1,  12.6};
const std::vector<float> kAmounts = {3,   7.5, 1.2, 0.4, 22,  5.1, 9,   2.2, 14,  6.3,
                                     0.9, 4.4, 31,  11,  8.2, 3.6, 1.8, 17,  2.9, 5.8};

TargetTransform Power(double lambda) {
  TargetTransform transform;
  transform.kind = kPower;
  transform.lambda = lambda;
  transform.least = -1e300;
  transform.most = 1e300;
  return transform;
}

std::vector<float> Times(const std::vector<float>& values, float factor) {
  std::vector<float> scaled = values;
  for (float& value : scaled) value *= factor;
  return scaled;
}

TEST(TargetTransformTest, KindsHaveTheNamesOfTheSpec) {
  for (const char* name : {"none", "log", "yeo_johnson"}) {
    ASSERT_TRUE(ParseTransform(name).has_value()) << name;
    EXPECT_EQ(TransformName(*ParseTransform(name)), name);
  }
  EXPECT_FALSE(ParseTransform("").has_value());
  EXPECT_FALSE(ParseTransform("sqrt").has_value());
}

// scipy.stats.yeojohnson(x, lambda) of scipy 1.17.1.
TEST(TargetTransformTest, ThePowerIsScipys) {
  const std::vector<double> x = {-30, -1, -0.25, 0, 0.5, 2, 1000};
  const struct {
    double lambda;
    std::vector<double> values;
  } kExpected[] = {
      {0, {-480, -1.5, -0.28125, 0, 0.4054651081081644, 1.0986122886681098, 6.90875477931522}},
      {0.3,
       {-201.18611526425596, -1.3229468149558483, -0.27136805866049757, 0, 0.4311564515228515,
        1.3012972343863647, 23.15221499458216}},
      {1, {-30, -1, -0.25, 0, 0.5, 2, 1000}},
      {1.7,
       {-6.005384498123946, -0.7704813778163876, -0.23078199997062676, 0, 0.583706976420589,
        3.219416376425753, 74179.78435176208}},
      {2,
       {-3.4339872044851463, -0.6931471805599453, -0.22314355131420976, 0, 0.625, 4,
        500999.9999999998}},
  };
  for (const auto& expected : kExpected) {
    for (size_t i = 0; i < x.size(); ++i) {
      const double value = Transformed(Power(expected.lambda), x[i]);
      EXPECT_NEAR(value, expected.values[i], 1e-9 * (1 + std::fabs(value)))
          << expected.lambda << ", " << x[i];
    }
  }
}

// scipy.stats.yeojohnson_normmax and scikit-learn's PowerTransformer agree: 0.7687147.
TEST(TargetTransformTest, LambdaIsThatOfScipyAndScikitLearn) {
  const TargetTransform transform = FitTransform(kPower, kSigned);
  EXPECT_NEAR(transform.center, 2.4, 1e-6);
  EXPECT_NEAR(transform.unit, 3.039288467791807, 1e-6);
  EXPECT_NEAR(transform.lambda, 0.768714725, 1e-5);
  const double expected[] = {-4.720615526108579, -2.6811755899126912, -2.085565445199774};
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_NEAR(Transformed(transform, kSigned[i]), expected[i], 1e-4) << i;
  }
}

// scipy's are -0.1825 and 2.1825: one branch would come to a halt there.
TEST(TargetTransformTest, LambdaStaysWhereBothBranchesGoOnWithoutEnd) {
  const TargetTransform amounts = FitTransform(kPower, kAmounts);
  EXPECT_NEAR(amounts.lambda, 0, 1e-6);
  EXPECT_NEAR(amounts.center, 2.9, 1e-6);
  EXPECT_NEAR(Transformed(amounts, 7.5), 0.7017494, 1e-5);
  EXPECT_NEAR(Transformed(amounts, 0.4f), -0.7057009, 1e-5);
  std::vector<float> left = kAmounts;
  for (float& value : left) value = 50 - value;
  const TargetTransform mirrored = FitTransform(kPower, left);
  EXPECT_NEAR(mirrored.lambda, 2, 1e-6);
  EXPECT_NEAR(Transformed(mirrored, 42.5), -0.7017494, 1e-5);
}

TEST(TargetTransformTest, TheUnitOfTheTargetDoesNotMatter) {
  const double lambda = FitTransform(kPower, kSigned).lambda;
  for (const float factor : {1e-30f, 1e-6f, 1e6f, 1e36f}) {
    const TargetTransform transform = FitTransform(kPower, Times(kSigned, factor));
    EXPECT_NEAR(transform.lambda, lambda, 1e-4) << factor;
    EXPECT_NEAR(Transformed(transform, -9 * factor), -4.7206155, 1e-3) << factor;
    EXPECT_TRUE(IsSound(transform)) << factor;
  }
}

TEST(TargetTransformTest, TheInverseIsExact) {
  for (const double lambda : {0.0, 1e-7, 0.5, 1.0, 1.5, 2 - 1e-7, 2.0}) {
    for (const double value : {-1e5, -77.0, -1.0, -1e-4, 0.0, 1e-7, 0.3, 1.0, 1e3, 1e5}) {
      const TargetTransform transform = Power(lambda);
      EXPECT_NEAR(Inverted(transform, Transformed(transform, value)), value,
                  1e-9 * (1 + std::fabs(value)))
          << lambda;
    }
  }
  for (const TransformKind kind : {kLog, kPower}) {
    const TargetTransform transform = FitTransform(kind, kAmounts);
    for (const float value : kAmounts) {
      EXPECT_NEAR(Inverted(transform, Transformed(transform, value)), value, 1e-6 * value);
    }
  }
}

TEST(TargetTransformTest, ValuesThatDoNotVaryOnlyMove) {
  for (const auto& values : std::vector<std::vector<float>>{
           {}, {kMissing}, {4}, {7, 7, 7}, std::vector<float>(50, -1e30f)}) {
    const TargetTransform transform = FitTransform(kPower, values);
    ASSERT_TRUE(IsSound(transform));
    EXPECT_EQ(transform.lambda, 1);
    for (const float value : values) {
      if (std::isnan(value)) continue;
      EXPECT_EQ(Transformed(transform, value), 0);
      EXPECT_EQ(Inverted(transform, 5), value) << "beyond all values that are known";
    }
  }
  const TargetTransform one = FitTransform(kLog, {3, 3});
  EXPECT_NEAR(Inverted(one, 100), 3, 1e-12);
}

TEST(TargetTransformTest, MissingValuesDoNotCount) {
  std::vector<float> holes = kSigned;
  holes.insert(holes.begin() + 3, 4, kMissing);
  EXPECT_EQ(FitTransform(kPower, holes).lambda, FitTransform(kPower, kSigned).lambda);
  EXPECT_TRUE(std::isnan(Transformed(FitTransform(kPower, holes), kMissing)));
  EXPECT_TRUE(std::isnan(Transformed(FitTransform(kLog, kAmounts), -1)));
}

// Three quarters are 0: the quartiles do not lie apart.
TEST(TargetTransformTest, ManyEqualValuesLeaveAUnit) {
  std::vector<float> values(300, 0.0f);
  for (int i = 0; i < 60; ++i) values.push_back(static_cast<float>(std::exp(0.1 * i)));
  const TargetTransform transform = FitTransform(kPower, values);
  ASSERT_TRUE(IsSound(transform));
  EXPECT_GT(transform.unit, 0.1);
  EXPECT_NEAR(Inverted(transform, Transformed(transform, 300)), 300, 1e-6);
}

TEST(TargetTransformTest, AnswersStayFiniteAndNearTheTrainingRowsValues) {
  constexpr float kMost = std::numeric_limits<float>::max();
  for (const auto& [kind, values] : std::vector<std::pair<TransformKind, std::vector<float>>>{
           {kLog, kAmounts},
           {kPower, kAmounts},
           {kPower, {-kMost, -1, 0, 1, 2, kMost}},
           {kPower, {-kMost, 1, 1, 1, 2, 3, 4, 5, 6, 7, 8, kMost}},
           {kLog, {1e-38f, 1, kMost}}}) {
    const std::vector<TargetTransform> transforms = {FitTransform(kind, values)};
    ASSERT_TRUE(IsSound(transforms[0]));
    std::vector<float> answers = {-1e30f, -50, 0, 50, 1e30f};
    ToOwnUnit(transforms, {{-2, 0.5, 7}}, absl::MakeSpan(answers));
    for (const float answer : answers) EXPECT_TRUE(std::isfinite(answer));
  }
  const std::vector<TargetTransform> amounts = {FitTransform(kLog, kAmounts)};
  std::vector<float> far = {1000, -1000};
  ToOwnUnit(amounts, {}, absl::MakeSpan(far));
  EXPECT_NEAR(far[0], 31 + 30.6, 1e-3) << "as far beyond the greatest as the least is from it";
  EXPECT_GT(far[1], 0);
}

TEST(TargetTransformTest, AModelThatDivergedAnswersWithNoNumber) {
  const std::vector<TargetTransform> transforms = {FitTransform(kLog, kAmounts)};
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  std::vector<float> answers = {kMissing, kInfinity, -kInfinity};
  for (const Smearing& smearing : {Smearing{}, Smearing{{0.2}}}) {
    std::vector<float> own = answers;
    ToOwnUnit(transforms, smearing, absl::MakeSpan(own));
    for (const float answer : own) EXPECT_FALSE(std::isfinite(answer));
  }
}

TEST(TargetTransformTest, WithoutTransformsAnswersAreTheTargets) {
  std::vector<float> answers = {1, -2, kMissing};
  ToOwnUnit({}, {}, absl::MakeSpan(answers));
  EXPECT_EQ(answers[0], 1);
  EXPECT_EQ(answers[1], -2);
}

TEST(SmearingTest, OfTheLogarithmItIsTheMeanFactorOfDuan) {
  const std::vector<TargetTransform> transforms = {FitTransform(kLog, kAmounts)};
  const std::vector<float> answers(kAmounts.size(), 1.5f);
  const Smearing smearing = FitSmearing(transforms, answers, kAmounts);
  double factor = 0;
  for (const float value : kAmounts) factor += value / std::exp(1.5) / 20;
  ASSERT_EQ(smearing.size(), 1u);
  ASSERT_EQ(smearing[0].size(), 1u);
  EXPECT_NEAR(smearing[0][0], std::log(factor), 1e-6);
  std::vector<float> own = {1.5f, 2};
  ToOwnUnit(transforms, smearing, absl::MakeSpan(own));
  const double mean = std::accumulate(kAmounts.begin(), kAmounts.end(), 0.0) / 20;
  EXPECT_NEAR(own[0], mean, 1e-4);
  EXPECT_NEAR(own[1], mean * std::exp(0.5), 1e-4) << "a factor of all answers";
}

// An answer that is the same for all rows becomes their mean.
TEST(SmearingTest, OfAPowerItMakesMeans) {
  std::vector<float> targets;
  for (int i = 0; i < 1001; ++i) {
    targets.push_back(static_cast<float>(std::exp(0.01 * i - 5) - 3));
  }
  targets[100] = kMissing;
  const std::vector<TargetTransform> transforms = {FitTransform(kPower, targets)};
  std::vector<float> answers(targets.size(), -0.1f);
  const Smearing smearing = FitSmearing(transforms, answers, targets);
  ASSERT_EQ(smearing[0].size(), 8u);
  double mean = 0;
  for (const float target : targets) mean += std::isnan(target) ? 0 : target / 1000;
  std::vector<float> medians = answers;
  ToOwnUnit(transforms, {}, absl::MakeSpan(medians));
  ToOwnUnit(transforms, smearing, absl::MakeSpan(answers));
  EXPECT_NEAR(answers[0], mean, 1e-3 * std::fabs(mean));
  EXPECT_GT(std::fabs(medians[0] - mean), 0.1 * std::fabs(mean)) << "so smearing has something to do";
}

TEST(SmearingTest, EachTargetHasItsOwn) {
  std::vector<float> targets, answers;
  for (int i = 0; i < 40; ++i) {
    targets.insert(targets.end(), {static_cast<float>(1 + i), static_cast<float>(2 * i - 30)});
    answers.insert(answers.end(), {2, -1});
  }
  std::vector<float> first, second;
  for (size_t i = 0; i < targets.size(); i += 2) {
    first.push_back(targets[i]);
    second.push_back(targets[i + 1]);
  }
  const std::vector<TargetTransform> both = {FitTransform(kLog, first),
                                             FitTransform(kPower, second)};
  const Smearing smearing = FitSmearing(both, answers, targets);
  const std::vector<float> two(40, 2.0f), minus_one(40, -1.0f);
  EXPECT_EQ(smearing[0], FitSmearing({both[0]}, two, first)[0]);
  EXPECT_EQ(smearing[1], FitSmearing({both[1]}, minus_one, second)[0]);
}

TEST(SmearingTest, FewRowsTellNoMean) {
  const std::vector<TargetTransform> transforms = {FitTransform(kLog, kAmounts)};
  const std::vector<float> answers(9, 1.0f);
  const Smearing smearing =
      FitSmearing(transforms, answers, absl::MakeConstSpan(kAmounts).first(9));
  EXPECT_TRUE(smearing[0].empty());
}

TEST(SmearingTest, RmseAndR2WantMeans) {
  for (const char* name : {"rmse", "r2"}) EXPECT_TRUE(WantsMeans(*MetricByName(name))) << name;
  for (const char* name : {"mae", "smape", "pinball"}) {
    EXPECT_FALSE(WantsMeans(*MetricByName(name))) << name;
  }
}

}  // namespace
}  // namespace traind
