// Both libraries through one interface, and each beside the same calls in a bare loop.
#include <absl/strings/str_cat.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "tests/worker/fixture/fold_fixture.h"
#include "worker/task/failure.h"
#include "worker/treefold/tree_fold.h"
#include "worker/trees/booster.h"
#include "worker/trees/lightgbm_api.h"
#include "worker/trees/tree_library.h"
#include "worker/trees/tree_spec.h"
#include "worker/trees/xgboost_api.h"

namespace traind {
namespace {

using ::testing::HasSubstr;

struct Fixture {
  TreeSpec spec;
  TreeFold fold;
};

Fixture Load(const std::string& spec_json, const FixtureOptions& options = {}) {
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
  for (int i = 0; i < rounds; ++i) {
    const auto grows = (*booster)->TrainRound();
    EXPECT_TRUE(grows.ok()) << grows.status();
  }
  return *std::move(booster);
}

std::vector<float> Validated(Booster& booster) {
  std::vector<float> answers;
  const absl::Status status = booster.AnswerValidation(answers);
  EXPECT_TRUE(status.ok()) << status;
  return answers;
}

constexpr char kLightgbm[] = R"({"model":{"lightgbm":{"learning_rate":0.1,"num_leaves":15}}})";
constexpr char kXgboost[] = R"({"model":{"xgboost":{"learning_rate":0.1,"max_depth":4}}})";
constexpr int kRounds = 40;

// Trains by the library as the product does, and compares with the answers of `bare`.
template <class Answers>
void ExpectSameAnswers(const char* settings, Answers (*bare)(const BoosterData&)) {
  const Fixture f = Load(settings);
  const std::vector<float> ours = Validated(*Trained(f, kRounds));
  const Answers theirs = bare(f.fold.DataOf(f.spec));
  ASSERT_EQ(ours.size(), theirs.size());
  for (size_t i = 0; i < ours.size(); ++i) {
    ASSERT_FLOAT_EQ(ours[i], static_cast<float>(theirs[i])) << i;
  }
}

// Does what a script does with the same settings, call by call.
std::vector<double> BareLightgbm(const BoosterData& data) {
  const LightgbmApi& api = **LoadLightgbm();
  const char* const parameters =
      "objective=multiclass num_class=3 learning_rate=0.1 num_leaves=15 verbosity=-1 "
      "num_threads=1 deterministic=true force_col_wise=true categorical_feature=4,5";
  void *training = nullptr, *validation = nullptr, *booster = nullptr;
  const auto dataset = [&](const TreeMatrix& m, void* reference, void** out) {
    EXPECT_EQ(api.DatasetCreateFromMat(
                  m.values.data(), LightgbmApi::kFloat32, static_cast<int32_t>(m.rows),
                  static_cast<int32_t>(m.columns), 0, parameters, reference, out),
              0);
  };
  dataset(data.training, nullptr, &training);
  dataset(data.validation, training, &validation);
  EXPECT_EQ(api.DatasetSetField(training, "label", data.targets.data(),
                                static_cast<int>(data.targets.size()), LightgbmApi::kFloat32),
            0);
  EXPECT_EQ(api.BoosterCreate(training, parameters, &booster), 0);
  EXPECT_EQ(api.BoosterAddValidData(booster, validation), 0);
  int finished = 0;
  for (int i = 0; i < kRounds; ++i) EXPECT_EQ(api.BoosterUpdateOneIter(booster, &finished), 0);
  std::vector<double> out(static_cast<size_t>(data.validation.rows) * 3);
  int64_t length = 0;
  EXPECT_EQ(api.BoosterPredictForMat(booster, data.validation.values.data(), LightgbmApi::kFloat32,
                                     static_cast<int32_t>(data.validation.rows),
                                     static_cast<int32_t>(data.validation.columns), 0,
                                     LightgbmApi::kNormal, 0, -1, "", &length, out.data()),
            0);
  api.BoosterFree(booster);
  api.DatasetFree(validation);
  api.DatasetFree(training);
  return out;
}

TEST(BoosterTest, LightgbmAnswersAsTheSameCallsInABareLoop) {
  ExpectSameAnswers(kLightgbm, BareLightgbm);
}

std::vector<float> BareXgboost(const BoosterData& data) {
  const XgboostApi& api = **LoadXgboost();
  const char* kinds[] = {"q", "q", "q", "q", "c", "c"};
  const auto array = [](const void* values, const std::string& shape) {
    return absl::StrCat("{\"data\":[", reinterpret_cast<uintptr_t>(values), ",true],\"shape\":[",
                        shape, "],\"typestr\":\"<f4\",\"version\":3}");
  };
  const auto matrix = [&](const TreeMatrix& m, void** out) {
    std::vector<float> by_row(m.values.size());
    for (int64_t c = 0; c < m.columns; ++c) {
      for (int64_t r = 0; r < m.rows; ++r) {
        by_row[static_cast<size_t>(r * m.columns + c)] =
            m.values[static_cast<size_t>(c * m.rows + r)];
      }
    }
    const std::string data = array(by_row.data(), absl::StrCat(m.rows, ",", m.columns));
    EXPECT_EQ(api.MatrixCreateFromDense(data.c_str(), "{\"missing\":NaN}", out), 0);
    EXPECT_EQ(api.MatrixSetStrFeatureInfo(*out, "feature_type", kinds, 6), 0);
  };
  void *training = nullptr, *validation = nullptr, *booster = nullptr;
  matrix(data.training, &training);
  matrix(data.validation, &validation);
  EXPECT_EQ(
      api.MatrixSetInfo(training, "label",
                        array(data.targets.data(), absl::StrCat(data.targets.size())).c_str()),
      0);
  EXPECT_EQ(api.BoosterCreate(&training, 1, &booster), 0);
  for (const auto& [name, value] :
       std::vector<std::pair<const char*, const char*>>{{"objective", "multi:softprob"},
                                                        {"num_class", "3"},
                                                        {"learning_rate", "0.1"},
                                                        {"max_depth", "4"},
                                                        {"nthread", "1"},
                                                        {"verbosity", "0"}}) {
    EXPECT_EQ(api.BoosterSetParam(booster, name, value), 0);
  }
  for (int i = 0; i < kRounds; ++i) EXPECT_EQ(api.BoosterUpdateOneIter(booster, i, training), 0);
  const uint64_t* shape = nullptr;
  uint64_t dimensions = 0;
  const float* out = nullptr;
  EXPECT_EQ(api.BoosterPredict(booster, validation,
                               "{\"type\":0,\"training\":false,\"iteration_begin\":0,"
                               "\"iteration_end\":0,\"strict_shape\":true}",
                               &shape, &dimensions, &out),
            0);
  std::vector<float> answers(out, out + data.validation.rows * 3);
  api.BoosterFree(booster);
  api.MatrixFree(validation);
  api.MatrixFree(training);
  return answers;
}

TEST(BoosterTest, XgboostAnswersAsTheSameCallsInABareLoop) {
  ExpectSameAnswers(kXgboost, BareXgboost);
}

class EachLibraryTest : public testing::TestWithParam<const char*> {
 protected:
  std::string Regression(const std::string& loss) const {
    return absl::StrCat(R"({"task":{"type":"regression"},"train":{"loss":{"kind":")", loss,
                        R"("}},"model":{")", GetParam(), R"(":{"learning_rate":0.1}}})");
  }
  // Trees of three levels fit few rows less closely. loss: the fields of train.loss.
  std::string ShallowTrees(const std::string& loss) const {
    return absl::StrCat(R"({"task":{"type":"regression"},"train":{"loss":{)", loss,
                        R"(}},"model":{")", GetParam(), R"(":{"max_depth":3}}})");
  }
  std::string Model(const std::string& rest = "") const {
    return absl::StrCat("{", rest, R"("model":{")", GetParam(), R"(":{}}})");
  }
};

TEST_P(EachLibraryTest, TheSameSeedsGiveTheSameTrees) {
  const bool light = GetParam() == std::string("lightgbm");
  const Fixture f = Load(
      absl::StrCat(R"({"model":{")", GetParam(),
                   light ? R"(":{"bagging_freq":1,"bagging_fraction":0.5,"feature_fraction":0.6}}})"
                         : R"(":{"subsample":0.5,"colsample_bynode":0.6}}})"));
  BoosterOptions options;
  options.seed = 5;
  const auto first = Trained(f, 30, options), second = Trained(f, 30, options);
  EXPECT_EQ(*first->Save(30), *second->Save(30));
  options.seed = 6;
  EXPECT_NE(*first->Save(30), *Trained(f, 30, options)->Save(30));
}

TEST_P(EachLibraryTest, SavedTreesAnswerAsThoseInTraining) {
  const Fixture f = Load(Model());
  const auto booster = Trained(f, 30);
  const std::vector<float> wanted = Validated(*booster);
  const auto bytes = booster->Save(30);
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  const auto loaded = LoadTrees(GetParam(), *bytes, 3, 1);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  std::vector<float> answers(wanted.size());
  const TreeMatrix rows = f.fold.DataOf(f.spec).validation;
  ASSERT_TRUE((*loaded)->Predict(rows, 30, absl::MakeSpan(answers)).ok());
  EXPECT_EQ(answers, wanted);
  // And so does a part of them.
  std::vector<float> part(wanted.size()), early = Validated(*Trained(f, 10));
  ASSERT_TRUE((*loaded)->Predict(rows, 10, absl::MakeSpan(part)).ok());
  EXPECT_EQ(part, early);
}

TEST_P(EachLibraryTest, BytesThatAreNoTreesAreDataLoss) {
  EXPECT_TRUE(absl::IsDataLoss(LoadTrees(GetParam(), "no trees", 3, 1).status()));
}

TEST_P(EachLibraryTest, EveryLossLearns) {
  for (const char* loss : {"mse", "mae", "huber", "smape", "quantile", "poisson", "tweedie"}) {
    FixtureOptions options;
    options.classification = false;
    const Fixture f = Load(Regression(loss), options);
    const auto metric = MetricByName(loss == std::string("smape") ? "smape" : "mae");
    const double first = f.fold.Score(*metric, Validated(*Trained(f, 1)));
    const double last = f.fold.Score(*metric, Validated(*Trained(f, 100)));
    EXPECT_LT(last, 0.6 * first) << loss;
  }
}

FixtureOptions Counts() {
  FixtureOptions options;
  options.classification = false;
  options.counts = true;
  options.train_rows = 2400;
  return options;
}

// The mean over the validation rows, with answers of 0 and below at a little more than 0.
double PoissonDeviance(const TreeFold& fold, const std::vector<float>& answers) {
  double sum = 0;
  for (size_t i = 0; i < answers.size(); ++i) {
    const double y = fold.values[i], mean = std::max(1e-3, static_cast<double>(answers[i]));
    sum += 2 * ((y > 0 ? y * std::log(y / mean) : 0) - y + mean);
  }
  return sum / static_cast<double>(answers.size());
}

TEST_P(EachLibraryTest, CountsAreLearntAndNoAnswerIsNegative) {
  for (const char* loss : {"poisson", "tweedie"}) {
    const Fixture f = Load(ShallowTrees(absl::StrCat(R"("kind":")", loss, R"(")")), Counts());
    const std::vector<float> answers = Validated(*Trained(f, 100));
    EXPECT_GE(*std::min_element(answers.begin(), answers.end()), 0) << loss;
    const double mean = std::accumulate(f.fold.values.begin(), f.fold.values.end(), 0.0) /
                        static_cast<double>(f.fold.values.size());
    const double of_mean =
        PoissonDeviance(f.fold, std::vector<float>(answers.size(), static_cast<float>(mean)));
    EXPECT_LT(PoissonDeviance(f.fold, answers), 0.6 * of_mean) << loss;
  }
}

TEST_P(EachLibraryTest, AQuantileHasItsShareOfTheTargetsBelow) {
  for (const double level : {0.1, 0.9}) {
    FixtureOptions options;
    options.classification = false;
    options.train_rows = 2400;
    const Fixture f =
        Load(ShallowTrees(absl::StrCat(R"("kind":"quantile","quantile":)", level)), options);
    EXPECT_EQ(MetricName(f.spec.metric), absl::StrCat("pinball_q", level));
    const std::vector<float> answers = Validated(*Trained(f, 60));
    double below = 0;
    for (size_t i = 0; i < answers.size(); ++i) below += f.fold.values[i] <= answers[i];
    EXPECT_NEAR(below / static_cast<double>(answers.size()), level, 0.08);
  }
}

// The files that are left are the library's own, so that its package predicts likewise.
TEST_P(EachLibraryTest, TheObjectiveIsTheLibrarysOwn) {
  const bool light = GetParam() == std::string("lightgbm");
  const auto saved = [this](const std::string& loss) {
    const auto bytes =
        Trained(Load(absl::StrCat(R"({"task":{"type":"regression"},"train":{"loss":{)", loss,
                                  R"(}},"model":{")", GetParam(), R"(":{}}})"),
                     Counts()),
                2)
            ->Save(2);
    EXPECT_TRUE(bytes.ok()) << bytes.status();
    return *bytes;
  };
  EXPECT_THAT(saved(R"("kind":"poisson")"),
              HasSubstr(light ? "objective=poisson" : "count:poisson"));
  const std::string tweedie = saved(R"("kind":"tweedie","tweedie_power":1.25)");
  EXPECT_THAT(tweedie, HasSubstr(light ? "objective=tweedie" : "reg:tweedie"));
  EXPECT_THAT(tweedie, HasSubstr(light ? "[tweedie_variance_power: 1.25]" : "1.25"));
  const std::string quantile = saved(R"("kind":"quantile","quantile":0.75)");
  EXPECT_THAT(quantile, HasSubstr(light ? "objective=quantile" : "reg:quantileerror"));
  EXPECT_THAT(quantile, HasSubstr(light ? "[alpha: 0.75]" : "7.5E-1"));
}

TEST_P(EachLibraryTest, CountsGoOnFromSavedTrees) {
  for (const char* loss : {"poisson", "tweedie", "quantile"}) {
    const Fixture f = Load(Regression(loss), Counts());
    const auto whole = Trained(f, 40);
    BoosterOptions options;
    options.resume = *Trained(f, 20)->Save(20);
    options.resume_rounds = 20;
    const auto resumed = Trained(f, 20, options);
    EXPECT_EQ(resumed->rounds(), 40);
    const std::vector<float> wanted = Validated(*whole), answers = Validated(*resumed);
    // What is saved answers as the booster itself.
    const auto loaded = LoadTrees(GetParam(), *resumed->Save(40), 1, 1);
    ASSERT_TRUE(loaded.ok()) << loaded.status();
    std::vector<float> later(answers.size());
    ASSERT_TRUE(
        (*loaded)->Predict(f.fold.DataOf(f.spec).validation, 40, absl::MakeSpan(later)).ok());
    for (size_t i = 0; i < wanted.size(); ++i) {
      EXPECT_NEAR(answers[i], wanted[i], 1e-3 * (1 + std::fabs(wanted[i]))) << loss << " " << i;
      EXPECT_NEAR(later[i], answers[i], 1e-5 * (1 + std::fabs(answers[i]))) << loss << " " << i;
    }
  }
}

TEST_P(EachLibraryTest, ClassWeightsMoveTheAnswers) {
  const Fixture plain = Load(Model());
  const Fixture heavy = Load(Model(R"("train":{"loss":{"weights":[20,1,1]}},)"));
  const auto share = [](const Fixture& f) {
    const std::vector<float> answers = Validated(*Trained(f, 20));
    double sum = 0;
    for (size_t i = 0; i < answers.size(); i += 3) sum += answers[i];
    return sum / static_cast<double>(answers.size() / 3);
  };
  EXPECT_GT(share(heavy), share(plain) + 0.1);
}

TEST_P(EachLibraryTest, AColumnThatIsConstantAndACategoryThatIsAloneDoNoHarm) {
  FixtureOptions options;
  TableRows rows = MakeRows(options);
  std::fill(rows.train[0].numbers.begin(), rows.train[0].numbers.end(), 1.0f);
  std::fill(rows.train[5].codes.begin(), rows.train[5].codes.end(), 0);
  rank_protocol::Train train;
  train.state_dir = NewStateDir();
  train.job = "job";
  train.table = WriteState(train.state_dir, rows, MakeFolds(options));
  const auto spec = ParseTreeSpec(Model(), 0);
  const auto fold = LoadTreeFold(train, *spec);
  ASSERT_TRUE(fold.ok()) << fold.status();
  BoosterOptions chosen;
  chosen.spec = *spec;
  auto booster = NewBooster(chosen, fold->DataOf(*spec));
  ASSERT_TRUE(booster.ok()) << booster.status();
  EXPECT_TRUE((*booster)->TrainRound().ok());
}

TEST_P(EachLibraryTest, RowsWithUnseenCategoriesAreAnsweredAsThoseWithoutOne) {
  const Fixture f = Load(Model());
  const auto booster = Trained(f, 30);
  const std::vector<float> numbers = {0, 10, 20, 30};
  const int32_t codes[] = {kUnseenCode, kMissingCode, 1000};
  std::vector<float> repeated[4];
  FeatureRows rows;
  for (int i = 0; i < 4; ++i) {
    repeated[i].assign(3, numbers[static_cast<size_t>(i)]);
    rows.numbers.push_back(repeated[i].data());
    rows.codes.push_back(nullptr);
  }
  for (int i = 0; i < 2; ++i) {
    rows.numbers.push_back(nullptr);
    rows.codes.push_back(codes);
  }
  std::vector<float> answers(9);
  ASSERT_TRUE(
      booster->Predict(f.fold.encoder->Encode(rows, 0, 3), 30, absl::MakeSpan(answers)).ok());
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(answers[i], answers[3 + i]);
    EXPECT_EQ(answers[i], answers[6 + i]);
  }
}

INSTANTIATE_TEST_SUITE_P(Libraries, EachLibraryTest, testing::Values("lightgbm", "xgboost"));

TEST(TreeSpecTest, ContradictionsAreNamed) {
  const auto refused = [](const char* json) {
    const auto spec = ParseTreeSpec(json, 0);
    EXPECT_EQ(FailureReason(spec.status()), AttemptEndReason::kUserError) << json;
    return std::string(spec.status().message());
  };
  EXPECT_THAT(refused(R"({"model":{"lightgbm":{"boosting":"rf"}}})"), HasSubstr("bagging_freq"));
  EXPECT_THAT(refused(R"({"model":{"xgboost":{"max_depth":0}}})"), HasSubstr("grow_policy"));
  EXPECT_THAT(refused(R"({"task":{"type":"segmentation"},"model":{"lightgbm":{}}})"),
              HasSubstr("segmentation"));
  EXPECT_THAT(refused(R"({"model":{"mlp":{}}})"), HasSubstr("lightgbm, xgboost or kernel"));
  const auto of_loss = [&](const char* kind, const char* type, const char* model) {
    return refused(absl::StrCat(R"({"task":{"type":")", type, R"("},"train":{"loss":{"kind":")",
                                kind, R"("}},"model":{)", model, "}}")
                       .c_str());
  };
  constexpr char kForest[] = R"("lightgbm":{"boosting":"rf","feature_fraction":0.5})";
  EXPECT_THAT(of_loss("poisson", "regression", kForest),
              HasSubstr("rf contradicts train.loss.kind poisson"));
  EXPECT_THAT(of_loss("tweedie", "regression", R"("kernel":{})"),
              HasSubstr("does not learn train.loss.kind tweedie"));
  EXPECT_THAT(of_loss("quantile", "forecasting", R"("lightgbm":{})"),
              HasSubstr("train.loss.kind: expected mse, mae, huber, smape"));
}

TEST(TreeLibraryTest, AMissingLibraryIsNamedWithItsVersionAndThePlaces) {
  ASSERT_EQ(setenv("TREES_OF_THE_TEST", "/nowhere/lib_lightgbm.so", 1), 0);
  const TreeLibrary library = {"LightGBM", "4.7.0", "lightgbm/lib/lib_lightgbm.so",
                               "TREES_OF_THE_TEST"};
  const absl::Status missing = OpenTreeLibrary(library).status();
  EXPECT_EQ(FailureReason(missing), AttemptEndReason::kUserError);
  for (const char* part : {"LightGBM 4.7.0", "/nowhere/lib_lightgbm.so", "TREES_OF_THE_TEST"}) {
    EXPECT_THAT(std::string(missing.message()), HasSubstr(part));
  }
  ASSERT_EQ(unsetenv("TREES_OF_THE_TEST"), 0);
  const TreeLibrary elsewhere = {"LightGBM", "4.7.0", "no/such.so", "TREES_OF_THE_TEST"};
  EXPECT_THAT(std::string(OpenTreeLibrary(elsewhere).status().message()),
              HasSubstr("/trees/no/such.so"));
}

TEST(TreeLibraryTest, AnotherVersionIsRefused) {
  const absl::Status other = CheckTreeVersion(kXgboostLibrary, "/x/libxgboost.so", "1.0.0");
  EXPECT_EQ(FailureReason(other), AttemptEndReason::kUserError);
  EXPECT_THAT(std::string(other.message()), HasSubstr("is XGBoost 1.0.0, but "));
  EXPECT_TRUE(CheckTreeVersion(kXgboostLibrary, "x", kXgboostLibrary.version).ok());
}

TEST(ContinuationTest, IsExactWhereNothingIsDrawn) {
  const auto of = [](const char* json) { return ContinuationOf(*ParseTreeSpec(json, 0)); };
  EXPECT_EQ(of(kLightgbm), Continuation::kExact);
  EXPECT_EQ(of(kXgboost), Continuation::kExact);
  EXPECT_EQ(of(R"({"model":{"lightgbm":{"feature_fraction":0.5}}})"), Continuation::kOtherDraws);
  EXPECT_EQ(of(R"({"model":{"xgboost":{"subsample":0.5}}})"), Continuation::kOtherDraws);
  EXPECT_EQ(of(R"({"model":{"lightgbm":{"boosting":"dart"}}})"), Continuation::kNone);
}

}  // namespace
}  // namespace traind
