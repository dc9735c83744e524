// A fixed body, learning rates by layer, and no decay for norms, against PyTorch
// (tests/golden/fine_tuning_golden.py).
#include <absl/strings/str_cat.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/base/durable_file.h"
#include "tests/worker/learner/fine_tuning_fixture.h"
#include "worker/pretrained/pretrained_weights.h"

namespace traind {
namespace {

struct Case {
  const char* optimizer;
  bool fused;
  bool by_layer = false;
};

class PyTorchStepsTest : public testing::TestWithParam<Case> {};

TEST_P(PyTorchStepsTest, AFixedBodyAndItsThawMoveWeightsAsInPyTorch) {
  const std::string kind = GetParam().optimizer;
  const bool by_layer = GetParam().by_layer;
  const std::string out = absl::StrCat("out.", by_layer ? "thaw_" : "", kind);
  const Golden golden("fine_tuning.safetensors");
  LearnerOptions options = ResnetOptions();
  options.thaws_by_layer = by_layer;
  if (by_layer) options.optimizer.eps = 0.1;
  options.optimizer.kind = *ParseOptimizer(kind);
  options.optimizer.momentum = kind == "sgd" ? 0.9 : kind == "rmsprop" ? 0.5 : 0;
  options.optimizer.nesterov = kind == "sgd";
  options.paths.fused_optimizer = GetParam().fused;
  const auto learner = Create(options, DataOf(kGoldenImages, std::make_shared<GoldenImages>()));
  LoadGoldenWeights(*learner);
  ASSERT_EQ(learner->layers(), kBody);
  const std::vector<float> losses = golden.Floats(out + ".losses");
  for (int64_t step = 0; step < kSteps; ++step) {
    const int64_t trained = by_layer ? kThawed[step] : step < kFrozen ? 0 : kBody;
    ASSERT_EQ(learner->TrainLayers(trained), absl::OkStatus());
    EXPECT_EQ(learner->trained_layers(), trained);
    EXPECT_EQ(learner->frozen(), trained == 0);
    const double wanted = losses[static_cast<size_t>(step)];
    EXPECT_NEAR(StepOver(*learner, 0, kGoldenImages, kRate), wanted, 2e-3 + 5e-3 * wanted)
        << "step " << step;
  }
  const auto state = learner->Save();
  ASSERT_TRUE(state.ok()) << state.status();
  EXPECT_EQ(state->optimizer_steps, kSteps);
  EXPECT_EQ(state->body_steps, kSteps - (by_layer ? 1 : kFrozen));
  EXPECT_EQ(state->layer_steps,
            by_layer ? (std::vector<int64_t>{2, 2, 2, 3, 3, 3, 4, 4, 4}) : std::vector<int64_t>{});
  std::vector<float> moved = state->slots.at(kWeightsSlot);
  const std::vector<float> before = ResnetWeights(learner->layout());
  for (size_t i = 0; i < moved.size(); ++i) moved[i] -= before[i];
  for (const char* name : {"conv1.weight", "bn1.bias", "layer2.0.downsample.0.weight",
                           "layer4.1.bn2.weight", "fc.weight", "fc.bias"}) {
    const std::vector<float> wanted = golden.Floats(absl::StrCat(out, ".moved.", name));
    const std::vector<double> found = DigestOfPart(*learner, moved, name);
    // The length, and a projection. Where gradients are near 0 the sign of an adaptive step is
    // noise.
    for (const size_t k : {size_t{4}, size_t{5}}) {
      EXPECT_NEAR(found[k], wanted[k], 0.03 * wanted[4]) << name << " " << k;
    }
  }
  for (const auto& [name, digest] : {std::make_pair("layer1.0.bn1.running_mean", ".mean"),
                                     std::make_pair("layer3.1.bn2.running_var", ".variance")}) {
    const std::vector<float> wanted = golden.Floats(out + digest);
    const std::vector<double> found = DigestOfPart(*learner, state->slots.at(kWeightsSlot), name);
    for (const size_t k : {size_t{4}, size_t{5}}) {
      EXPECT_NEAR(found[k], wanted[k], 2e-3 * wanted[4]) << name << " " << k;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Optimizers, PyTorchStepsTest,
                         testing::Values(Case{"adamw", true}, Case{"adamw", false},
                                         Case{"adam", true}, Case{"sgd", true}, Case{"sgd", false},
                                         Case{"rmsprop", true}, Case{"rmsprop", false},
                                         Case{"adamw", true, true}, Case{"adamw", false, true},
                                         Case{"sgd", true, true}),
                         [](const auto& info) {
                           return absl::StrCat(info.param.optimizer,
                                               info.param.fused ? "Fused" : "",
                                               info.param.by_layer ? "ByLayer" : "");
                         });

TEST(FrozenBodyTest, EachRowPassesItOnceAndItStaysToTheBit) {
  constexpr int64_t kRows = 20;
  const auto images = std::make_shared<GoldenImages>();
  LearnerOptions options = ResnetOptions();
  options.ema_decay = 0.5;
  const auto learner = Create(options, DataOf(kRows, images));
  LoadGoldenWeights(*learner);
  ASSERT_EQ(learner->Freeze(true), absl::OkStatus());
  const auto before = learner->Save();
  for (int epoch = 0; epoch < 3; ++epoch) {
    for (const int32_t first : {0, 4, 8, 12}) StepOver(*learner, first, 4, 0.01);
  }
  EXPECT_EQ(images->loaded(), 16);
  std::vector<float> fast(kRows * kClasses), slow(kRows * kClasses);
  for (int pass = 0; pass < 2; ++pass) {
    ASSERT_EQ(learner->Predict(Weights::kLast, RowsFrom(0, kRows), absl::MakeSpan(fast)),
              absl::OkStatus());
    EXPECT_EQ(images->loaded(), kRows);
  }
  const auto after = learner->Save();
  for (const auto& [slot, values] : before->slots) {
    EXPECT_EQ(Part(*learner, values, IsOfBody), Part(*learner, after->slots.at(slot), IsOfBody))
        << slot;
  }
  EXPECT_NE(before->slots.at(kWeightsSlot), after->slots.at(kWeightsSlot));
  // The whole network gives the same answers.
  ASSERT_EQ(learner->Freeze(false), absl::OkStatus());
  ASSERT_EQ(learner->Predict(Weights::kLast, RowsFrom(0, kRows), absl::MakeSpan(slow)),
            absl::OkStatus());
  for (size_t i = 0; i < fast.size(); ++i) EXPECT_NEAR(fast[i], slow[i], 1e-5) << i;
  StepOver(*learner, 0, 4, 0.01);
  EXPECT_NE(Part(*learner, after->slots.at(kWeightsSlot), IsOfBody),
            Part(*learner, learner->Save()->slots.at(kWeightsSlot), IsOfBody));
}

TEST(FrozenBodyTest, ARunThatIsTakenUpBeforeOrAfterTheThawGoesOnBitForBit) {
  for (const int64_t taken_up : {1, 3}) {
    SCOPED_TRACE(taken_up);
    std::unique_ptr<Learner> learner;
    const auto fresh = [&] {
      return Create(ResnetOptions(), DataOf(kGoldenImages, std::make_shared<GoldenImages>()));
    };
    std::vector<Learner::State> ends;
    for (const int64_t cut : {int64_t{0}, taken_up}) {
      learner = fresh();
      LoadGoldenWeights(*learner);
      for (int64_t step = 0; step < 4; ++step) {
        if (cut > 0 && step == cut) {
          const auto state = learner->Save();
          learner = fresh();
          ASSERT_EQ(learner->Load(*state), absl::OkStatus());
        }
        ASSERT_EQ(learner->Freeze(step < kFrozen), absl::OkStatus());
        StepOver(*learner, 0, kGoldenImages, kRate);
      }
      ends.push_back(*learner->Save());
    }
    EXPECT_EQ(ends[0].slots, ends[1].slots);
    EXPECT_EQ(ends[1].body_steps, 2);
  }
}

TEST(FrozenBodyTest, ATextsBodyHasNoDropoutAndItsHeadHas) {
  for (const char* const family : {"bert", "roberta", "distilbert"}) {
    SCOPED_TRACE(family);
    const auto learner =
        Create(BertOptions(family, 0.3), DataOf(12, std::make_shared<MadeTexts>(24)));
    ASSERT_EQ(learner->Freeze(true), absl::OkStatus());
    const double one = StepOver(*learner, 0, 12, 0, /*seed=*/1);
    const double other = StepOver(*learner, 0, 12, 0, /*seed=*/2);
    EXPECT_NE(one, other);
    const auto plain = Create(BertOptions(family, 0), DataOf(12, std::make_shared<MadeTexts>(24)));
    ASSERT_EQ(plain->Freeze(true), absl::OkStatus());
    const double frozen = StepOver(*plain, 0, 12, 0);
    ASSERT_EQ(plain->Freeze(false), absl::OkStatus());
    EXPECT_NEAR(StepOver(*plain, 0, 12, 0), frozen, 1e-5);
  }
}

TEST(FrozenBodyTest, HalfPrecisionTrainsTheHeadAndThenAll) {
  std::vector<double> losses[2];
  for (const Precision precision : {Precision::kFp32, Precision::kBf16}) {
    LearnerOptions options = BertOptions("bert", 0);
    options.precision = precision;
    const auto learner = Create(options, DataOf(12, std::make_shared<MadeTexts>(24)));
    for (int step = 0; step < 12; ++step) {
      ASSERT_EQ(learner->Freeze(step < 6), absl::OkStatus());
      losses[precision == Precision::kBf16].push_back(StepOver(*learner, 0, 12, 0.003));
    }
  }
  EXPECT_LT(losses[0].back(), losses[0][0] - 0.05);
  for (size_t i = 0; i < losses[0].size(); ++i) EXPECT_NEAR(losses[0][i], losses[1][i], 0.05) << i;
}

TEST(FrozenBodyTest, TwoRanksTrainAsOneBeforeAndAfterTheThaw) {
  const auto learner = Create(BertOptions("bert", 0), DataOf(12, std::make_shared<MadeTexts>(24)));
  for (int step = 0; step < 8; ++step) {
    ASSERT_EQ(learner->Freeze(step < 4), absl::OkStatus());
    StepOver(*learner, 0, step == 7 ? 6 : 12, 0.003);
  }
  const std::vector<float> alone = learner->Save()->slots.at(kWeightsSlot);
  for (const Transport transport : {Transport::kSharedMemory, Transport::kGloo}) {
    const Learner::State gang = TrainGang(transport, BertOptions("bert", 0));
    const std::vector<float>& weights = gang.slots.at(kWeightsSlot);
    ASSERT_EQ(weights.size(), alone.size());
    double most = 0;
    for (size_t i = 0; i < alone.size(); ++i)
      most = std::max<double>(most, std::abs(weights[i] - alone[i]));
    EXPECT_LT(most, 2e-4) << TransportName(transport);
    EXPECT_EQ(gang.body_steps, 4);
  }
}

// The norm is that of the head's gradient, whatever the body's was before.
TEST(FrozenBodyTest, TheGradientOfTheBodyIsNotMeasured) {
  const auto of = [](bool thawed_before) {
    const auto learner =
        Create(BertOptions("bert", 0), DataOf(12, std::make_shared<MadeTexts>(24)));
    if (thawed_before) StepOver(*learner, 0, 12, 0);
    EXPECT_EQ(learner->Freeze(true), absl::OkStatus());
    EXPECT_EQ(learner->SetOrder(RowsFrom(0, 12)), absl::OkStatus());
    EXPECT_EQ(learner->Step({0, 12, 12, 0, 1}), absl::OkStatus());
    return learner->ConsumeLoss()->gradient_norm;
  };
  const double norm = of(false);
  EXPECT_GT(norm, 0);
  EXPECT_EQ(of(true), norm);
}

// The texts that tests/golden/hub_texts_golden.py has chosen.
class GoldenTexts final : public MediaSource {
 public:
  absl::Status Load(const MediaRequest& request, MediaBatch& out) const override {
    out = MediaBatch();
    for (const int32_t row : request.rows) {
      const auto at = static_cast<size_t>(row);
      const auto begin = static_cast<size_t>(row == 0 ? 0 : ends_[at - 1]);
      for (size_t i = begin; i < static_cast<size_t>(ends_[at]); ++i) {
        out.tokens.push_back(static_cast<int32_t>(tokens_[i]));
      }
      out.ends.push_back(static_cast<int32_t>(out.tokens.size()));
    }
    return absl::OkStatus();
  }
  int64_t rows() const { return static_cast<int64_t>(ends_.size()); }

 private:
  const Golden golden_{"texts/bert/golden.safetensors"};
  const std::vector<float> tokens_ = golden_.Floats("in.tokens"), ends_ = golden_.Floats("in.ends");
};

// The same as in tests/golden/lora_golden.py.
LearnerOptions LoraOptions() {
  LearnerOptions options = BertOptions("bert", 0);
  options.shape.outputs = 3;
  options.model.lora.emplace();
  options.model.lora->rank = 3;
  options.model.lora->alpha = 6;
  options.layer_decay = 1;
  options.clip_norm = 0;
  options.optimizer.weight_decay = 0;
  return options;
}

LearnerData ThreeClasses(const std::shared_ptr<const GoldenTexts>& texts) {
  LearnerData data;
  data.rows.rows = texts->rows();
  data.rows.media = texts;
  for (int64_t row = 0; row < texts->rows(); ++row) {
    data.classes.push_back(static_cast<int32_t>(row % 3));
  }
  return data;
}

// The folder's weights, and the golden file's for the low-rank changes.
void LoadLora(Learner& learner, const Golden& golden) {
  auto state = learner.Save();
  ASSERT_TRUE(state.ok()) << state.status();
  std::vector<float>& weights = state->slots[kWeightsSlot];
  PretrainedSpec spec;
  spec.architecture = "bert";
  const std::string path = "tests/golden/texts/bert/model.safetensors";
  spec.sha256 = DigestFile(path)->sha256;
  const auto report = LoadPretrained(spec, path, learner.layout(), 0, absl::MakeSpan(weights));
  ASSERT_TRUE(report.ok()) << report.status();
  auto at = weights.begin();
  for (const ParameterInfo& info : learner.layout()) {
    if (IsOfLora(info.name)) {
      const std::vector<float> values = golden.Floats("in." + info.name);
      ASSERT_EQ(static_cast<int64_t>(values.size()), info.size) << info.name;
      std::copy(values.begin(), values.end(), at);
    }
    at += info.size;
  }
  ASSERT_EQ(learner.Load(*state), absl::OkStatus());
}

TEST(LoraTest, AnswersAndStepsAreThoseOfPeft) {
  const Golden golden("lora.safetensors");
  const auto texts = std::make_shared<GoldenTexts>();
  const auto learner = Create(LoraOptions(), ThreeClasses(texts));
  LoadLora(*learner, golden);
  const std::vector<float> before = learner->Save()->slots.at(kWeightsSlot);
  std::vector<float> answers(static_cast<size_t>(3 * texts->rows()));
  const std::vector<int32_t> rows = RowsFrom(0, texts->rows());
  ASSERT_EQ(learner->Predict(Weights::kLast, rows, absl::MakeSpan(answers)), absl::OkStatus());
  const std::vector<float> logits = golden.Floats("out.logits");
  for (size_t i = 0; i < answers.size(); i += 3) {
    double sum = 0;
    for (size_t c = i; c < i + 3; ++c) sum += std::exp(logits[c]);
    for (size_t c = i; c < i + 3; ++c) EXPECT_NEAR(answers[c], std::exp(logits[c]) / sum, 1e-5);
  }
  for (const float wanted : golden.Floats("out.losses")) {
    EXPECT_NEAR(StepOver(*learner, 0, texts->rows(), 0.01), wanted, 2e-4);
  }
  const auto after = learner->Save();
  const auto fixed = [](const ParameterInfo& info) {
    return IsOfBody(info) && !IsOfLora(info.name);
  };
  EXPECT_EQ(Part(*learner, before, fixed), Part(*learner, after->slots.at(kWeightsSlot), fixed));
  int compared = 0;
  for (const ParameterInfo& info : learner->layout()) {
    if (info.name.find("layer.1.output.dense.lora_") == std::string::npos) continue;
    const std::vector<float> own =
        Part(*learner, after->slots.at(kWeightsSlot),
             [&](const ParameterInfo& of) { return of.name == info.name; });
    const std::vector<float> wanted = golden.Floats("out." + info.name);
    for (size_t i = 0; i < wanted.size(); ++i) EXPECT_NEAR(own[i], wanted[i], 2e-3) << info.name;
    ++compared;
  }
  EXPECT_EQ(compared, 2);
  // The optimizer has a state for what is trained alone.
  for (const float value : Part(*learner, after->slots.at("exp_avg"), fixed)) EXPECT_EQ(value, 0);
}

TEST(LoraTest, AtFirstTheNetworkAnswersAsWithoutIt) {
  LearnerOptions options = LoraOptions();
  const auto texts = std::make_shared<GoldenTexts>();
  std::vector<std::vector<float>> answers;
  for (const bool with : {true, false}) {
    if (!with) options.model.lora.reset();
    const auto learner = Create(options, ThreeClasses(texts));
    auto& out = answers.emplace_back(static_cast<size_t>(3 * texts->rows()));
    ASSERT_EQ(learner->Predict(Weights::kLast, RowsFrom(0, texts->rows()), absl::MakeSpan(out)),
              absl::OkStatus());
  }
  EXPECT_EQ(answers[0], answers[1]);
}

TEST(LoraTest, TwoRanksTrainAsOneAndActivationsMayBeComputedAgain) {
  const auto options_of = [] {
    LearnerOptions options = BertOptions("bert", 0);
    options.model.lora.emplace();
    return options;
  };
  const auto learner = Create(options_of(), DataOf(12, std::make_shared<MadeTexts>(24)));
  const auto again = Create(options_of(), DataOf(12, std::make_shared<MadeTexts>(24)));
  ASSERT_TRUE(again->SetRecompute(true));
  for (int step = 0; step < 8; ++step) {
    for (Learner* const own : {learner.get(), again.get()}) {
      ASSERT_EQ(own->Freeze(step < 4), absl::OkStatus());
      StepOver(*own, 0, step == 7 ? 6 : 12, 0.003);
    }
  }
  const std::vector<float> alone = learner->Save()->slots.at(kWeightsSlot);
  const Learner::State gang = TrainGang(Transport::kSharedMemory, options_of());
  for (const auto& other : {gang.slots.at(kWeightsSlot), again->Save()->slots.at(kWeightsSlot)}) {
    double most = 0;
    for (size_t i = 0; i < alone.size(); ++i)
      most = std::max<double>(most, std::abs(other[i] - alone[i]));
    EXPECT_LT(most, 2e-4);
  }
}

TEST(LoraTest, ImageNetworksWithLinearLayersLearnByThemAlone) {
  for (const char* const name : {"convnext_atto", "vit_tiny_patch16_224"}) {
    SCOPED_TRACE(name);
    LearnerOptions options;
    options.model = ModelOf("cnn", absl::StrCat(R"({"architecture":")", name, R"("})"));
    options.model.lora.emplace();
    options.model.lora->rank = 2;
    options.shape.image = {3, 32, 32};
    options.shape.outputs = kClasses;
    options.objective.loss = LossKind::kCrossEntropy;
    const auto learner =
        Create(options, DataOf(5, std::make_shared<MadeImages>(options.shape.image)));
    const std::vector<float> before = learner->Save()->slots.at(kWeightsSlot);
    const double first = StepOver(*learner, 0, 5, 0.003);
    double last = first;
    for (int step = 0; step < 5; ++step) last = StepOver(*learner, 0, 5, 0.003);
    EXPECT_LT(last, first);
    const std::vector<float> after = learner->Save()->slots.at(kWeightsSlot);
    const auto moved = [&](const auto& wanted) {
      return Part(*learner, before, wanted) != Part(*learner, after, wanted);
    };
    EXPECT_TRUE(moved([](const ParameterInfo& info) { return IsOfLora(info.name); }));
    EXPECT_FALSE(
        moved([](const ParameterInfo& info) { return IsOfBody(info) && !IsOfLora(info.name); }));
  }
}

TEST(LoraTest, ANetworkWithoutLinearLayersIsRefused) {
  LearnerOptions options = ResnetOptions();
  options.model.lora.emplace();
  const auto resnet = Learner::Create(options, DataOf(4, std::make_shared<GoldenImages>()));
  EXPECT_EQ(resnet.status().message(), "model.lora: the network's body has no linear layers");
}

TEST(AveragedWeightsTest, TheirMeanPredictsAndIsTakenUpAgain) {
  LearnerOptions options = BertOptions("bert", 0);
  options.averages = true;
  const auto fresh = [&] { return Create(options, DataOf(12, std::make_shared<MadeTexts>(24))); };
  const auto answers = [](Learner& learner, Weights which) {
    std::vector<float> out(12 * kClasses);
    EXPECT_EQ(learner.Predict(which, RowsFrom(0, 12), absl::MakeSpan(out)), absl::OkStatus());
    return out;
  };
  auto learner = fresh();
  std::vector<double> sum;
  std::vector<float> last;
  for (int epoch = 0; epoch < 3; ++epoch) {
    StepOver(*learner, 0, 12, 0.01);
    last = learner->Save()->slots.at(kWeightsSlot);
    sum.resize(last.size());
    for (size_t i = 0; i < last.size(); ++i) sum[i] += last[i];
    if (epoch == 0) {
      const std::vector<float> plain = answers(*learner, Weights::kLast);
      ASSERT_EQ(learner->AverageWeights(), absl::OkStatus());
      EXPECT_EQ(answers(*learner, Weights::kLast), plain) << "the mean of one";
      const auto state = learner->Save();
      learner = fresh();
      ASSERT_EQ(learner->Load(*state), absl::OkStatus());
    } else {
      ASSERT_EQ(learner->AverageWeights(), absl::OkStatus());
    }
  }
  ASSERT_EQ(learner->KeepBest(), absl::OkStatus());
  const auto state = learner->Save();
  EXPECT_EQ(state->averaged, 3);
  EXPECT_EQ(state->slots.at(kWeightsSlot), last) << "training goes on from the last weights";
  const std::vector<float>& mean = state->slots.at(kBestWeightsSlot);
  for (size_t i = 0; i < mean.size(); ++i) EXPECT_NEAR(mean[i], sum[i] / 3, 1e-6) << i;
  EXPECT_EQ(answers(*learner, Weights::kLast), answers(*learner, Weights::kBest));
  EXPECT_EQ(Create(BertOptions("bert", 0), DataOf(12, std::make_shared<MadeTexts>(24)))
                ->AverageWeights()
                .code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(FrozenBodyTest, ANetworkWithoutABodyIsRefused) {
  LearnerOptions options;
  options.model = ModelOf("mlp");
  options.shape.numeric = 2;
  options.shape.outputs = kClasses;
  options.objective.loss = LossKind::kCrossEntropy;
  LearnerData data;
  data.rows.rows = 1;
  data.rows.numeric = {0, 0};
  data.classes = {0};
  const auto learner = Create(options, std::move(data));
  EXPECT_EQ(learner->Freeze(true).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(learner->Freeze(false), absl::OkStatus());
}

}  // namespace
}  // namespace traind
