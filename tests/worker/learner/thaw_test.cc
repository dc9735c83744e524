// Layers of a body that thaw one after the other. fine_tuning_test.cc compares their steps with
// PyTorch's.
#include <absl/strings/str_cat.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "tests/worker/learner/fine_tuning_fixture.h"

namespace traind {
namespace {

TEST(ThawTest, LayersBeforeThoseThatAreTrainedStayToTheBit) {
  LearnerOptions options = ResnetOptions();
  options.thaws_by_layer = true;
  const auto learner = Create(options, DataOf(kGoldenImages, std::make_shared<GoldenImages>()));
  LoadGoldenWeights(*learner);
  ASSERT_EQ(learner->TrainLayers(kBody), absl::OkStatus());
  StepOver(*learner, 0, kGoldenImages, kRate);
  const Learner::State before = *learner->Save();
  ASSERT_EQ(learner->TrainLayers(4), absl::OkStatus());
  StepOver(*learner, 0, kGoldenImages, kRate);
  const Learner::State after = *learner->Save();
  for (const auto& [slot, values] : before.slots) {
    if (slot == kBestWeightsSlot) continue;
    for (const ParameterInfo& info : learner->layout()) {
      const auto of = [&](const Learner::State& state) {
        return Part(*learner, state.slots.at(slot),
                    [&](const ParameterInfo& other) { return other.name == info.name; });
      };
      if (IsOfBody(info) && info.depth < kBody - 4) {
        EXPECT_EQ(of(before), of(after)) << slot << " of " << info.name;
      } else if (slot == kWeightsSlot) {
        EXPECT_NE(of(before), of(after)) << info.name;
      }
    }
  }
}

TEST(ThawTest, ARunThatIsTakenUpInItsMiddleGoesOnBitForBit) {
  LearnerOptions options = ResnetOptions();
  options.thaws_by_layer = true;
  const auto fresh = [&] {
    return Create(options, DataOf(kGoldenImages, std::make_shared<GoldenImages>()));
  };
  std::vector<Learner::State> ends;
  for (const int64_t cut : {-1, 1, 2, 3}) {
    auto learner = fresh();
    LoadGoldenWeights(*learner);
    for (int64_t step = 0; step < kSteps; ++step) {
      if (step == cut) {
        const auto state = learner->Save();
        learner = fresh();
        ASSERT_EQ(learner->Load(*state), absl::OkStatus());
      }
      ASSERT_EQ(learner->TrainLayers(kThawed[step]), absl::OkStatus());
      StepOver(*learner, 0, kGoldenImages, kRate);
    }
    ends.push_back(*learner->Save());
    EXPECT_EQ(ends[0].slots, ends.back().slots) << cut;
    EXPECT_EQ(ends[0].layer_steps, ends.back().layer_steps) << cut;
  }
}

TEST(ThawTest, AStateOfABodyThatThawedAtOnceIsTakenUp) {
  LearnerOptions options = ResnetOptions();
  const auto whole = Create(options, DataOf(kGoldenImages, std::make_shared<GoldenImages>()));
  StepOver(*whole, 0, kGoldenImages, kRate);
  EXPECT_EQ(whole->TrainLayers(1).code(), absl::StatusCode::kInvalidArgument);
  options.thaws_by_layer = true;
  const auto learner = Create(options, DataOf(kGoldenImages, std::make_shared<GoldenImages>()));
  ASSERT_EQ(learner->Load(*whole->Save()), absl::OkStatus());
  EXPECT_EQ(learner->Save()->layer_steps, std::vector<int64_t>(kBody, 1));
}

// Fixed layers answer without dropout, recomputed or not, and in half precision.
TEST(ThawTest, TextsAndImagesLearnByTheirLastLayers) {
  for (const char* const family : {"bert", "distilbert", "deberta_v3", "modernbert"}) {
    for (const Precision precision : {Precision::kFp32, Precision::kBf16}) {
      SCOPED_TRACE(absl::StrCat(family, " ", PrecisionName(precision)));
      LearnerOptions options = BertOptions(family, 0.1);
      options.thaws_by_layer = true;
      options.precision = precision;
      double losses[2] = {0, 0};
      for (const bool recomputes : {false, true}) {
        const auto learner = Create(options, DataOf(12, std::make_shared<MadeTexts>(24)));
        ASSERT_TRUE(learner->SetRecompute(recomputes) || !recomputes);
        ASSERT_EQ(learner->TrainLayers(1), absl::OkStatus());
        const int64_t fixed = learner->layers() - 1;
        const auto of_fixed = [fixed](const ParameterInfo& info) {
          return IsOfBody(info) && info.depth < fixed;
        };
        const Learner::State before = *learner->Save();
        const double first = StepOver(*learner, 0, 12, 0.003);
        for (int step = 0; step < 8; ++step) losses[recomputes] = StepOver(*learner, 0, 12, 0.003);
        EXPECT_LT(losses[recomputes], first);
        EXPECT_EQ(Part(*learner, before.slots.at(kWeightsSlot), of_fixed),
                  Part(*learner, learner->Save()->slots.at(kWeightsSlot), of_fixed));
      }
      EXPECT_NEAR(losses[0], losses[1], 1e-3);
    }
  }
  for (const char* const name : {"convnext_atto", "vit_tiny_patch16_224", "efficientnet_b0"}) {
    SCOPED_TRACE(name);
    LearnerOptions options;
    options.model =
        ModelOf("cnn", absl::StrCat(R"({"drop_path":0.1,"architecture":")", name, R"("})"));
    options.shape.image = {3, 32, 32};
    options.shape.outputs = kClasses;
    options.objective.loss = LossKind::kCrossEntropy;
    options.thaws_by_layer = true;
    const auto learner =
        Create(options, DataOf(10, std::make_shared<MadeImages>(options.shape.image)));
    ASSERT_EQ(learner->TrainLayers(3), absl::OkStatus());
    const int64_t fixed = learner->layers() - 3;
    const Learner::State before = *learner->Save();
    StepOver(*learner, 0, 10, 0.003);
    const Learner::State after = *learner->Save();
    for (const bool of_fixed : {true, false}) {
      const auto part = [&](const Learner::State& state) {
        return Part(*learner, state.slots.at(kWeightsSlot), [&](const ParameterInfo& info) {
          return IsOfBody(info) && (info.depth < fixed) == of_fixed;
        });
      };
      EXPECT_EQ(part(before) == part(after), of_fixed);
    }
  }
}

TEST(ThawTest, TwoRanksTrainAsOneLayerByLayer) {
  LearnerOptions options = BertOptions("bert", 0);
  options.thaws_by_layer = true;
  const auto learner = Create(options, DataOf(12, std::make_shared<MadeTexts>(24)));
  for (int step = 0; step < 8; ++step) {
    ASSERT_EQ(learner->TrainLayers(LayersOfStep(options, step)), absl::OkStatus());
    StepOver(*learner, 0, step == 7 ? 6 : 12, 0.003);
  }
  const Learner::State alone = *learner->Save();
  for (const Transport transport : {Transport::kSharedMemory, Transport::kGloo}) {
    const Learner::State gang = TrainGang(transport, options);
    EXPECT_EQ(gang.layer_steps, alone.layer_steps);
    const std::vector<float>& one = alone.slots.at(kWeightsSlot);
    const std::vector<float>& two = gang.slots.at(kWeightsSlot);
    double most = 0;
    for (size_t i = 0; i < one.size(); ++i)
      most = std::max<double>(most, std::abs(one[i] - two[i]));
    EXPECT_LT(most, 2e-4) << TransportName(transport);
  }
}

}  // namespace
}  // namespace traind
