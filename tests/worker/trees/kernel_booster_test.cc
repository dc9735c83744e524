// Kernel ridge regression as rounds of settings, on tables with gaps and categories.
#include "worker/trees/kernel_booster.h"

#include <absl/strings/str_cat.h>
#include <gmock/gmock.h>

#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "tests/worker/fixture/fold_fixture.h"
#include "worker/treefold/tree_fold.h"
#include "worker/trees/tree_spec.h"

namespace traind {
namespace {

using ::testing::HasSubstr;

constexpr char kPlain[] = R"({"model":{"kernel":{}}})";

struct Fixture {
  TreeSpec spec;
  TreeFold fold;
};

Fixture Load(const std::string& spec_json, FixtureOptions options = {}) {
  Fixture fixture;
  rank_protocol::Train train;
  train.state_dir = NewStateDir();
  train.job = "job";
  train.table = WriteState(train.state_dir, MakeRows(options), MakeFolds(options));
  auto spec = ParseTreeSpec(spec_json, 0);
  EXPECT_TRUE(spec.ok()) << spec.status();
  fixture.spec = *std::move(spec);
  auto fold = LoadTreeFold(train, fixture.spec);
  EXPECT_TRUE(fold.ok()) << fold.status();
  fixture.fold = *std::move(fold);
  return fixture;
}

std::unique_ptr<Booster> Trained(const Fixture& f, int rounds, BoosterOptions options = {}) {
  options.spec = f.spec;
  auto booster = NewBooster(options, f.fold.DataOf(f.spec));
  EXPECT_TRUE(booster.ok()) << booster.status();
  while ((*booster)->rounds() < rounds) EXPECT_TRUE(*(*booster)->TrainRound());
  return *std::move(booster);
}

std::vector<float> Validated(Booster& booster) {
  std::vector<float> answers;
  EXPECT_TRUE(booster.AnswerValidation(answers).ok());
  return answers;
}

TEST(KernelBoosterTest, LearnsClassesAndValues) {
  const Fixture classes = Load(kPlain);
  EXPECT_EQ(classes.spec.rounds, 9);
  EXPECT_GT(classes.fold.Score(*MetricByName("accuracy"), Validated(*Trained(classes, 1))), 0.65);

  FixtureOptions options;
  options.classification = false;
  const Fixture values = Load(R"({"task":{"type":"regression"},"model":{"kernel":{}}})", options);
  EXPECT_GT(values.fold.Score(*MetricByName("r2"), Validated(*Trained(values, 1))), 0.7);
}

TEST(KernelBoosterTest, EachRoundIsAnotherSettingAndThereAreNoMore) {
  const Fixture f = Load(kPlain);
  const auto booster = Trained(f, 9);
  std::vector<std::vector<float>> seen;
  const TreeMatrix rows = f.fold.DataOf(f.spec).validation;
  for (int64_t round = 1; round <= 9; ++round) {
    std::vector<float> answers(static_cast<size_t>(rows.rows) * 3);
    ASSERT_TRUE(booster->Predict(rows, round, absl::MakeSpan(answers)).ok());
    for (const std::vector<float>& other : seen) EXPECT_NE(answers, other) << round;
    seen.push_back(answers);
  }
  const auto more = booster->TrainRound();
  ASSERT_TRUE(more.ok());
  EXPECT_FALSE(*more);
  EXPECT_EQ(Load(R"({"model":{"kernel":{"alpha":0.1}}})").spec.rounds, 5);
  EXPECT_EQ(Load(R"({"model":{"kernel":{"gamma":0.1}}})").spec.rounds, 5);
  EXPECT_EQ(Load(R"({"model":{"kernel":{"gamma":0.1,"alpha":2}}})").spec.rounds, 1);
}

TEST(KernelBoosterTest, ASavedKernelAnswersAsTheOneInTrainingAndGoesOnToTheSameBytes) {
  const Fixture f = Load(kPlain);
  const auto booster = Trained(f, 4);
  const std::vector<float> wanted = Validated(*booster);
  const auto bytes = booster->Save(4);
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  const auto loaded = LoadTrees("kernel", *bytes, 3, 1);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  std::vector<float> answers(wanted.size());
  const TreeMatrix rows = f.fold.DataOf(f.spec).validation;
  ASSERT_TRUE((*loaded)->Predict(rows, 4, absl::MakeSpan(answers)).ok());
  EXPECT_EQ(answers, wanted);
  EXPECT_FALSE((*loaded)->Predict(rows, 5, absl::MakeSpan(answers)).ok());

  BoosterOptions options;
  options.resume = *bytes;
  options.resume_rounds = 4;
  EXPECT_EQ(*Trained(f, 6, options)->Save(6), *Trained(f, 6)->Save(6));
  EXPECT_EQ(ContinuationOf(f.spec), Continuation::kExact);
}

TEST(KernelBoosterTest, DamagedBytesAreDataLoss) {
  FixtureOptions options;
  options.train_rows = 30;
  const Fixture f = Load(kPlain, options);
  const std::string bytes = *Trained(f, 2)->Save(2);
  ASSERT_TRUE(LoadTrees("kernel", bytes, 3, 1).ok());
  for (size_t size = 0; size < bytes.size(); size += 7) {
    EXPECT_TRUE(absl::IsDataLoss(LoadTrees("kernel", bytes.substr(0, size), 3, 1).status()))
        << size;
  }
  EXPECT_TRUE(absl::IsDataLoss(LoadTrees("kernel", bytes, 2, 1).status())) << "of other outputs";
  // A digit of the header becomes another one: a shape, or a place.
  const size_t header = bytes.find("coefficients");
  for (size_t at = header; at < bytes.find("}}", header); ++at) {
    if (bytes[at] < '1' || bytes[at] > '8') continue;
    std::string other = bytes;
    ++other[at];
    const auto loaded = LoadTrees("kernel", other, 3, 1);
    EXPECT_TRUE(loaded.ok() || absl::IsDataLoss(loaded.status())) << loaded.status();
  }
}

TEST(KernelBoosterTest, OfTooManyRowsSomeAreDrawnByTheSeed) {
  const Fixture f = Load(R"({"model":{"kernel":{"max_rows":100}}})");
  const std::string all = *Trained(Load(kPlain), 1)->Save(1);
  BoosterOptions options;
  options.seed = 3;
  const std::string some = *Trained(f, 1, options)->Save(1);
  EXPECT_LT(some.size(), all.size() / 2);
  EXPECT_EQ(some, *Trained(f, 1, options)->Save(1));
  options.seed = 4;
  EXPECT_NE(some, *Trained(f, 1, options)->Save(1));
}

TEST(KernelBoosterTest, ClassWeightsMoveTheAnswers) {
  const Fixture plain = Load(kPlain);
  const Fixture heavy = Load(R"({"train":{"loss":{"weights":[20,1,1]}},"model":{"kernel":{}}})");
  const auto share = [](const Fixture& f) {
    const std::vector<float> answers = Validated(*Trained(f, 1));
    double sum = 0;
    for (size_t i = 0; i < answers.size(); i += 3) sum += answers[i];
    return sum / static_cast<double>(answers.size() / 3);
  };
  EXPECT_GT(share(heavy), share(plain) + 0.1);
}

class Columns final : public TreeColumns {
 public:
  explicit Columns(std::vector<bool> categorical, std::vector<bool> words = {}) {
    categorical_ = std::move(categorical);
    words_ = std::move(words);
  }
};

// Answers of a kernel of three rows for other rows; columns follow each other.
std::vector<float> Answers(const Columns& columns, std::vector<float> training,
                           std::vector<float> asked) {
  BoosterOptions options;
  options.spec.kernel.emplace();
  options.spec.kernel->max_rows = 100;
  const int64_t width = columns.columns();
  BoosterData data;
  data.encoder = &columns;
  data.training = {3, width, std::move(training)};
  data.targets = {1, 2, 4};
  auto booster = NewKernel(options, std::move(data));
  EXPECT_TRUE(booster.ok()) << booster.status();
  EXPECT_TRUE((*booster)->TrainRound().ok());
  const TreeMatrix rows = {static_cast<int64_t>(asked.size()) / width, width, asked};
  std::vector<float> answers(static_cast<size_t>(rows.rows));
  EXPECT_TRUE((*booster)->Predict(rows, 1, absl::MakeSpan(answers)).ok());
  return answers;
}

constexpr float kGap = std::numeric_limits<float>::quiet_NaN();

TEST(KernelBoosterTest, AMissingNumberIsTheMeanAndFarOnesAreCut) {
  const Columns number({false});
  const std::vector<float> answers = Answers(number, {1, 2, 6}, {kGap, 3, 1000, 1e9f, 2});
  EXPECT_EQ(answers[0], answers[1]);  // 3 is the mean
  EXPECT_EQ(answers[2], answers[3]);
  EXPECT_NE(answers[1], answers[4]);
  // The scale of a column does not matter.
  EXPECT_NEAR(Answers(number, {100, 200, 600}, {200})[0], answers[4], 1e-5);
}

TEST(KernelBoosterTest, AWordIsThereOrNot) {
  const Columns word({false}, {true});
  const std::vector<float> answers = Answers(word, {0, 1, 1}, {kGap, 0, 1});
  EXPECT_EQ(answers[0], answers[1]);  // not the mean
  EXPECT_LT(answers[1], answers[2]);
}

TEST(KernelBoosterTest, EachCategoryIsAColumnAndUnseenOnesAreNone) {
  const Columns category({true});
  const std::vector<float> answers = Answers(category, {0, 1, 2}, {0, 1, 2, 7, kGap, -1});
  EXPECT_LT(answers[0], answers[1]);
  EXPECT_LT(answers[1], answers[2]);
  EXPECT_EQ(answers[3], answers[4]);
  EXPECT_EQ(answers[3], answers[5]);
}

TEST(KernelBoosterTest, ColumnsThatDoNotVaryOrHaveTooManyCategoriesAreNotUsed) {
  const Columns columns({false, false, true});
  const auto used = Answers(columns, {1, 2, 6, 5, 5, 5, 0, 1, 256}, {2, 5, 1});
  EXPECT_EQ(used, Answers(columns, {1, 2, 6, 5, 5, 5, 0, 1, 256}, {2, 99, kGap}));
  BoosterOptions options;
  options.spec.kernel.emplace();
  BoosterData data;
  const Columns constant({false});
  data.encoder = &constant;
  data.training = {3, 1, {5, 5, kGap}};
  data.targets = {1, 2, 4};
  const auto none = NewKernel(options, std::move(data));
  EXPECT_TRUE(absl::IsInvalidArgument(none.status()));
  EXPECT_THAT(none.status().message(), HasSubstr("no column varies"));
}

TEST(KernelBoosterTest, DoesNotForecast) {
  const auto spec = ParseTreeSpec(R"({"task":{"type":"forecasting"},"model":{"kernel":{}}})", 0);
  EXPECT_THAT(spec.status().message(), HasSubstr("does not forecast"));
}

}  // namespace
}  // namespace traind
