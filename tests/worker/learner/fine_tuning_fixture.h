// What tests of fine-tuning share: learners with the golden weights, and steps of one or of two
// ranks.
#pragma once

#include <absl/strings/str_cat.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common/base/durable_file.h"
#include "common/base/reserved_port.h"
#include "tests/worker/model/golden.h"
#include "tests/worker/model/golden_images.h"
#include "tests/worker/model/made_media.h"
#include "tests/worker/model/model_of.h"
#include "tests/worker/model/resnet_weights.h"
#include "worker/device/collective.h"
#include "worker/learner/learner.h"

namespace traind {

// The same as in tests/golden/fine_tuning_golden.py.
inline constexpr int64_t kClasses = 5, kFrozen = 2, kSteps = 5;
inline constexpr double kRate = 0.002, kLayerDecay = 0.7, kWeightDecay = 0.05, kClip = 0.8;

// As THAWED in the script: layers of the body that each step trains.
inline constexpr int64_t kBody = 9;
inline constexpr int64_t kThawed[kSteps] = {0, 3, 6, 9, 9};

inline LearnerOptions ResnetOptions() {
  LearnerOptions options;
  options.model = ModelOf("cnn", R"({"architecture":"resnet18"})");
  options.shape.image = {3, kGoldenSide, kGoldenSide};
  options.shape.outputs = kClasses;
  options.objective.loss = LossKind::kCrossEntropy;
  options.optimizer.weight_decay = kWeightDecay;
  options.clip_norm = kClip;
  options.layer_decay = kLayerDecay;
  options.decay_norms = false;
  return options;
}

inline LearnerData DataOf(int64_t rows, std::shared_ptr<const MediaSource> media) {
  LearnerData data;
  data.rows.rows = rows;
  data.rows.media = std::move(media);
  for (int64_t row = 0; row < rows; ++row) {
    data.classes.push_back(static_cast<int32_t>(row % kClasses));
  }
  return data;
}

inline std::unique_ptr<Learner> Create(const LearnerOptions& options, LearnerData data) {
  SetTorchThreads(1);
  auto learner = Learner::Create(options, std::move(data));
  EXPECT_TRUE(learner.ok()) << learner.status();
  return *std::move(learner);
}

inline void LoadGoldenWeights(Learner& learner) {
  auto state = learner.Save();
  ASSERT_TRUE(state.ok()) << state.status();
  for (const char* const slot : {kWeightsSlot, kBestWeightsSlot, kEmaSlot}) {
    if (state->slots.count(slot) > 0) state->slots[slot] = ResnetWeights(learner.layout());
  }
  ASSERT_EQ(learner.Load(*state), absl::OkStatus());
}

// One step over the rows from `first` on.
inline double StepOver(Learner& learner, int32_t first, int64_t rows, double rate,
                       uint64_t seed = 1) {
  EXPECT_EQ(learner.SetOrder(RowsFrom(first, rows)), absl::OkStatus());
  EXPECT_EQ(learner.Step({0, rows, rows, rate, seed}), absl::OkStatus());
  const auto loss = learner.ConsumeLoss();
  EXPECT_TRUE(loss.ok()) << loss.status();
  return loss->mean();
}

inline std::vector<float> Part(const Learner& learner, const std::vector<float>& values,
                               const std::function<bool(const ParameterInfo&)>& wanted) {
  std::vector<float> part;
  int64_t begin = 0;
  for (const ParameterInfo& info : learner.layout()) {
    if (wanted(info)) {
      part.insert(part.end(), values.begin() + begin, values.begin() + begin + info.size);
    }
    begin += info.size;
  }
  return part;
}

inline std::vector<double> DigestOfPart(const Learner& learner, const std::vector<float>& values,
                                        const std::string& name) {
  ParameterInfo info;
  const std::vector<float> own = Part(learner, values, [&](const ParameterInfo& of) {
    return of.name == name && (info = of, true);
  });
  return DigestOf(info, own.data());
}

inline bool IsOfBody(const ParameterInfo& info) { return info.depth != kHeadDepth; }
// A text network of the golden folders; there are no norms over batches, so ranks add up to one.
inline LearnerOptions BertOptions(const std::string& family, double dropout) {
  LearnerOptions options;
  options.model = ModelOf("text", absl::StrCat(R"({"architecture":")", family, R"("})"));
  options.model.text->dropout = dropout;
  options.model.pretrained.emplace();
  options.model.pretrained->folder = absl::StrCat("tests/golden/texts/", family);
  options.model.pretrained->config =
      ReadFile(absl::StrCat(options.model.pretrained->folder, "/config.json")).value();
  options.shape.vocabulary = 433;
  options.shape.max_tokens = 24;
  options.shape.outputs = kClasses;
  options.objective.loss = LossKind::kCrossEntropy;
  options.layer_decay = 0.8;
  options.decay_norms = false;
  options.seed = 3;
  return options;
}
// Of the body's layers: none in the first four steps, then all, or one more in each.
inline int64_t LayersOfStep(const LearnerOptions& options, int step) {
  constexpr int kFixed = 4, kAll = 1000;
  if (step < kFixed) return 0;
  return options.thaws_by_layer ? step - kFixed + 1 : kAll;
}

// Steps of a gang of two, each rank with half of the rows; the second has none in the last step.
inline Learner::State TrainGang(Transport transport, LearnerOptions options) {
  constexpr int64_t kRows = 12;
  const int port = ReservePort();
  Learner::State ends[2];
  const auto rank = [&](int own) {
    GroupOptions join;
    join.port = port;
    join.rank = own;
    join.transport = transport;
    auto group = Group::Join(join);
    ASSERT_TRUE(group.ok()) << group.status();
    LearnerOptions own_options = options;
    own_options.group = group->get();
    const auto learner = Create(own_options, DataOf(kRows, std::make_shared<MadeTexts>(24)));
    for (int step = 0; step < 8; ++step) {
      ASSERT_EQ(learner->TrainLayers(LayersOfStep(options, step)), absl::OkStatus());
      StepInput input;
      input.gang_rows = step == 7 ? kRows / 2 : kRows;
      input.rows = step == 7 && own == 1 ? 0 : kRows / 2;
      input.learning_rate = 0.003;
      ASSERT_EQ(learner->SetOrder(RowsFrom(own * 6, input.rows)), absl::OkStatus());
      ASSERT_EQ(learner->Step(input), absl::OkStatus());
    }
    ends[own] = *learner->Save();
  };
  std::thread other(rank, 1);
  rank(0);
  other.join();
  EXPECT_EQ(ends[0].slots.at(kWeightsSlot), ends[1].slots.at(kWeightsSlot));
  return ends[0];
}

}  // namespace traind
