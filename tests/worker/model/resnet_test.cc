// ResNets under torchvision's names, against PyTorch (tests/golden/resnet_golden.py).
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/from_blob.h>
#include <absl/strings/str_cat.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "tests/worker/model/golden.h"
#include "tests/worker/model/golden_images.h"
#include "tests/worker/model/model_of.h"
#include "tests/worker/model/resnet_weights.h"
#include "worker/data/media_source.h"
#include "worker/learner/learner.h"
#include "worker/model/networks/model.h"

namespace traind {
namespace {

constexpr int64_t kClasses = 5, kBatch = 4, kSize = 65, kSteps = 3;
constexpr double kLearningRate = 0.01, kMomentum = 0.9;

ModelSpec Resnet(const std::string& architecture) {
  ModelSpec spec = ModelOf("cnn");
  spec.cnn->architecture = architecture;
  return spec;
}

ModelShape Shape() {
  ModelShape shape;
  shape.image = {3, kSize, kSize};
  shape.outputs = kClasses;
  return shape;
}

at::Tensor Images() {
  const std::vector<double> drawn = Drawn("images", kBatch * 3 * kSize * kSize);
  const std::vector<float> values(drawn.begin(), drawn.end());
  return at::from_blob(const_cast<float*>(values.data()), {kBatch, kSize, kSize, 3}, at::kFloat)
      .clone()
      .permute({0, 3, 1, 2});
}

// A network with the golden weights.
struct Network {
  explicit Network(const std::string& architecture) : Network(Resnet(architecture)) {}
  explicit Network(const ModelSpec& spec) {
    auto made = CreateModel(spec, Shape(), parameters);
    EXPECT_TRUE(made.ok()) << made.status();
    model = *std::move(made);
    parameters.Allocate(c10::kCPU);
    parameters.Unpack(ResnetWeights(parameters.layout()), parameters.flat());
  }
  // weights: those of `parameters`, or like them.
  at::Tensor Forward(const std::vector<at::Tensor>& weights, const at::Tensor& images,
                     bool training) {
    Inputs inputs;
    inputs.image = images;
    return model->Forward(weights, inputs, training);
  }
  // The loss of a step, which is differentiated.
  double Step(const std::vector<at::Tensor>& weights) {
    const at::Tensor images = Images().to(weights[0].scalar_type());
    const at::Tensor loss = at::cross_entropy_loss(Forward(weights, images, /*training=*/true),
                                                   at::arange(kBatch, at::kLong));
    loss.backward();
    return loss.item<double>();
  }
  std::vector<at::Tensor> InFloat64() const {
    std::vector<at::Tensor> weights;
    for (const at::Tensor& weight : parameters.tensors()) {
      weights.push_back(weight.detach().to(at::kDouble).set_requires_grad(weight.requires_grad()));
    }
    return weights;
  }

  Parameters parameters;
  std::unique_ptr<Model> model;
};

// Compares gradients, and the statistics after a step.
void ExpectStep(const std::string& architecture, const ParameterLayout& layout,
                const std::vector<at::Tensor>& weights, double tolerance) {
  const Golden golden("resnet.safetensors");
  for (size_t i = 0; i < layout.size(); ++i) {
    const bool trained = weights[i].requires_grad();
    const std::string key =
        absl::StrCat("out.", architecture, trained ? ".gradient." : ".buffer.", layout[i].name);
    const std::vector<float> wanted = golden.Floats(key);
    const at::Tensor values =
        (trained ? weights[i].grad() : weights[i]).to(at::kFloat).contiguous();
    const std::vector<double> found = DigestOf(layout[i], values.const_data_ptr<float>());
    ASSERT_EQ(found.size(), wanted.size()) << key;
    for (size_t k = 0; k < found.size(); ++k) {
      EXPECT_NEAR(found[k], wanted[k], k < 4 ? 0 : tolerance * wanted[4]) << key << " " << k;
    }
  }
}

TEST(ResnetTest, LogitsAreThoseOfPyTorchByLoopsAndByOperators) {
  const Golden golden("resnet.safetensors");
  for (const std::string architecture : {"resnet18", "resnet34", "resnet50", "resnet101"}) {
    SCOPED_TRACE(architecture);
    Network network(architecture);
    const std::vector<float> wanted = golden.Floats(absl::StrCat("out.", architecture, ".logits"));
    const at::NoGradGuard no_gradients;
    double most = 0;
    for (const float value : wanted) most = std::max<double>(most, std::abs(value));
    for (const bool loops : {true, false}) {
      network.model->UseLoops(loops);
      const at::Tensor out =
          network.Forward(network.parameters.tensors(), Images(), /*training=*/false).contiguous();
      ASSERT_EQ(static_cast<size_t>(out.numel()), wanted.size());
      for (size_t i = 0; i < wanted.size(); ++i) {
        EXPECT_NEAR(out.const_data_ptr<float>()[i], wanted[i], 1e-5 * most) << i;
      }
    }
  }
}

TEST(ResnetTest, TheMeanOverViewsOfAnImageIsThatOfPyTorch) {
  const std::vector<float> wanted = Golden("resnet.safetensors").Floats("out.views.logits");
  ModelSpec spec = Resnet("resnet18");
  spec.cnn->mirror = true;
  spec.cnn->view_shift = 0.1;
  spec.cnn->view_scales = {1, 1.25, 0.75};
  Network network(spec);
  double most = 0;
  for (const float value : wanted) most = std::max<double>(most, std::abs(value));
  const at::NoGradGuard no_gradients;
  const at::Tensor out =
      network.Forward(network.parameters.tensors(), Images(), /*training=*/false).contiguous();
  ASSERT_EQ(static_cast<size_t>(out.numel()), wanted.size());
  for (size_t i = 0; i < wanted.size(); ++i) {
    EXPECT_NEAR(out.const_data_ptr<float>()[i], wanted[i], 2e-5 * most) << i;
  }
  // A step sees the image alone.
  Network plain("resnet18");
  const auto trained = [](Network& of) {
    return of.Forward(of.parameters.tensors(), Images(), /*training=*/true);
  };
  EXPECT_TRUE(trained(network).equal(trained(plain)));
}

TEST(ResnetTest, GradientsAndStatisticsAreThoseOfPyTorchInFloat64) {
  const Golden golden("resnet.safetensors");
  for (const std::string architecture : {"resnet18", "resnet50"}) {
    SCOPED_TRACE(architecture);
    Network network(architecture);
    network.model->UseLoops(false);
    const std::vector<at::Tensor> weights = network.InFloat64();
    const double wanted = golden.Floats(absl::StrCat("out.", architecture, ".loss"))[0];
    EXPECT_NEAR(network.Step(weights), wanted, 1e-6 * wanted);
    ExpectStep(architecture, network.parameters.layout(), weights, 1e-6);
  }
}

TEST(ResnetTest, GradientsAndStatisticsInFloat32AreNearThem) {
  for (const bool recompute : {false, true}) {
    SCOPED_TRACE(recompute);
    Network network("resnet18");
    network.model->SetRecompute(recompute);
    network.Step(network.parameters.tensors());
    ExpectStep("resnet18", network.parameters.layout(), network.parameters.tensors(), 5e-4);
  }
}

TEST(ResnetTest, NoRowsGiveNoAnswersAndLeaveTheStatisticsAlone) {
  Network network("resnet18");
  const at::Tensor before = network.parameters.buffers().clone();
  network.Forward(network.parameters.tensors(), Images().narrow(0, 0, 0), /*training=*/true)
      .sum()
      .backward();
  EXPECT_TRUE(network.parameters.buffers().equal(before));
}

TEST(ResnetTrainingTest, LossesAreThoseOfPyTorchStepByStep) {
  const Golden golden("resnet.safetensors");
  const std::vector<float> losses = golden.Floats("out.losses");
  for (const bool loops : {true, false}) {
    LearnerOptions options;
    options.model = Resnet("resnet18");
    options.shape = Shape();
    options.objective.loss = LossKind::kCrossEntropy;
    options.optimizer.kind = OptimizerKind::kSgd;
    options.optimizer.momentum = kMomentum;
    options.optimizer.weight_decay = 0;
    options.clip_norm = 0;
    options.paths.handwritten_backward = loops;
    LearnerData data;
    data.rows.rows = kBatch;
    data.rows.media = std::make_shared<GoldenImages>();
    data.classes = RowsFrom(0, kBatch);
    SetTorchThreads(1);
    const auto learner = Learner::Create(options, std::move(data));
    ASSERT_TRUE(learner.ok()) << learner.status();
    auto state = (*learner)->Save();
    ASSERT_TRUE(state.ok()) << state.status();
    state->slots[kWeightsSlot] = ResnetWeights((*learner)->layout());
    ASSERT_EQ((*learner)->Load(*state), absl::OkStatus());
    for (int64_t step = 0; step < kSteps; ++step) {
      ASSERT_EQ((*learner)->SetOrder(RowsFrom(0, kBatch)), absl::OkStatus());
      ASSERT_EQ((*learner)->Step({0, kBatch, kBatch, kLearningRate, 1}), absl::OkStatus());
      const double wanted = losses[static_cast<size_t>(step)];
      EXPECT_NEAR((*learner)->ConsumeLoss()->mean(), wanted, 5e-4 * wanted) << "step " << step;
    }
  }
}

}  // namespace
}  // namespace traind
