// ViT, ConvNeXt and EfficientNet under timm's names, against timm
// (tests/golden/image_networks_golden.py).
#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/_upsample_bilinear2d_aa.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/zeros_like.h>
#include <absl/strings/str_cat.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/worker/model/golden.h"
#include "tests/worker/model/model_of.h"
#include "tests/worker/model/resnet_weights.h"
#include "worker/model/networks/model.h"

namespace traind {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kClasses = 5, kBatch = 4, kSize = 64, kSteps = 3;
constexpr float kLearningRate = 0.002f, kMomentum = 0.9f;

ModelSpec SpecOf(const std::string& architecture) {
  ModelSpec spec = ModelOf("cnn");
  spec.cnn->architecture = architecture;
  return spec;
}

ModelShape ShapeOf(int64_t size) {
  ModelShape shape;
  shape.image = {3, size, size};
  shape.outputs = kClasses;
  return shape;
}

at::Tensor Images(int64_t batch, int64_t size) {
  const std::vector<double> drawn = Drawn("images", batch * 3 * size * size);
  const std::vector<float> values(drawn.begin(), drawn.end());
  return at::from_blob(const_cast<float*>(values.data()), {batch, size, size, 3}, at::kFloat)
      .clone()
      .permute({0, 3, 1, 2});
}

// A network with the golden weights.
struct Network {
  explicit Network(const std::string& architecture, int64_t size = kSize, double drop_path = 0,
                   std::vector<double> scales = {}) {
    at::set_num_threads(1);  // more of them wait for each other where other tests run
    ModelSpec spec = SpecOf(architecture);
    spec.cnn->drop_path = drop_path;
    spec.cnn->view_scales = std::move(scales);
    auto made = CreateModel(spec, ShapeOf(size), parameters);
    EXPECT_TRUE(made.ok()) << made.status();
    model = *std::move(made);
    parameters.Allocate(c10::kCPU);
    parameters.Unpack(ResnetWeights(parameters.layout()), parameters.flat());
  }

  at::Tensor Forward(const std::vector<at::Tensor>& weights, const at::Tensor& images,
                     bool training, uint64_t seed = 0) {
    Inputs inputs;
    inputs.image = images;
    inputs.dropout_seed = seed;
    return model->Forward(weights, inputs, training);
  }
  // The loss of a step, which is differentiated.
  double Step(const std::vector<at::Tensor>& weights) {
    const at::Tensor images = Images(kBatch, kSize).to(weights[0].scalar_type());
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

void ExpectLogits(const at::Tensor& found, const std::vector<float>& wanted) {
  const at::Tensor out = found.contiguous();
  ASSERT_EQ(static_cast<size_t>(out.numel()), wanted.size());
  for (size_t i = 0; i < wanted.size(); ++i) {
    EXPECT_NEAR(out.const_data_ptr<float>()[i], wanted[i], 2e-5) << i;
  }
}

// Compares gradients, and the statistics after a step.
void ExpectStep(const std::string& architecture, const ParameterLayout& layout,
                const std::vector<at::Tensor>& weights, double tolerance) {
  const Golden golden("image_networks.safetensors");
  const std::vector<float> wanted = golden.Floats(absl::StrCat("out.", architecture, ".after"));
  constexpr size_t kDigest = 10;
  ASSERT_EQ(wanted.size(), layout.size() * kDigest);
  std::vector<size_t> by_name(layout.size());
  for (size_t i = 0; i < by_name.size(); ++i) by_name[i] = i;
  std::sort(by_name.begin(), by_name.end(),
            [&](size_t a, size_t b) { return layout[a].name < layout[b].name; });
  for (size_t row = 0; row < by_name.size(); ++row) {
    const size_t i = by_name[row];
    const float* const digest = wanted.data() + row * kDigest;
    const at::Tensor values =
        (weights[i].requires_grad() ? weights[i].grad() : weights[i]).to(at::kFloat).contiguous();
    const std::vector<double> found = DigestOf(layout[i], values.const_data_ptr<float>());
    for (size_t k = 0; k < found.size(); ++k) {
      EXPECT_NEAR(found[k], digest[k], k < 4 ? 0 : tolerance * digest[4] + 1e-9)
          << layout[i].name << " " << k;
    }
  }
}

class ImageNetworksTest : public testing::TestWithParam<const char*> {};

TEST_P(ImageNetworksTest, LogitsAreThoseOfTimmByLoopsAndByOperators) {
  const std::string architecture = GetParam();
  const Golden golden("image_networks.safetensors");
  const at::NoGradGuard no_gradients;
  for (const bool loops : {true, false}) {
    Network network(architecture);
    network.model->UseLoops(loops);
    ExpectLogits(network.Forward(network.parameters.tensors(), Images(kBatch, kSize), false),
                 golden.Floats(absl::StrCat("out.", architecture, ".logits")));
  }
}

TEST(VitTest, PositionsOfImagesOfTheirSizeAreTakenAsTheyAre) {
  const Golden golden("image_networks.safetensors");
  const at::NoGradGuard no_gradients;
  Network network("vit_tiny_patch16_224", 224);
  ExpectLogits(network.Forward(network.parameters.tensors(), Images(1, 224), false),
               golden.Floats("out.vit_tiny_patch16_224.large"));
}

TEST_P(ImageNetworksTest, GradientsAndStatisticsAreThoseOfTimmInFloat64) {
  const std::string architecture = GetParam();
  const Golden golden("image_networks.safetensors");
  const double wanted = golden.Floats(absl::StrCat("out.", architecture, ".loss"))[0];
  for (const bool recompute : {false, true}) {
    SCOPED_TRACE(recompute);
    Network network(architecture);
    network.model->UseLoops(false);
    network.model->SetRecompute(recompute);
    const std::vector<at::Tensor> weights = network.InFloat64();
    EXPECT_NEAR(network.Step(weights), wanted, 1e-6 * wanted);
    ExpectStep(architecture, network.parameters.layout(), weights, 1e-5);
  }
}

TEST_P(ImageNetworksTest, LossesAreThoseOfTimmStepByStep) {
  const std::string architecture = GetParam();
  const Golden golden("image_networks.safetensors");
  const std::vector<float> losses = golden.Floats(absl::StrCat("out.", architecture, ".losses"));
  Network network(architecture);
  const at::Tensor gradient = network.parameters.trained().clone();
  at::Tensor momentum = at::zeros_like(gradient);
  for (size_t step = 0; step < kSteps; ++step) {
    EXPECT_NEAR(network.Step(network.parameters.tensors()), losses[step], 1e-3) << step;
    const at::NoGradGuard no_gradients;
    network.parameters.MoveGradientsTo(gradient);
    momentum.mul_(kMomentum).add_(gradient);
    network.parameters.trained().sub_(momentum, kLearningRate);
  }
}

TEST_P(ImageNetworksTest, NoRowsGiveNoAnswersAndLeaveTheStatisticsAlone) {
  Network network(GetParam());
  const at::Tensor before = network.parameters.buffers().clone();
  network.Forward(network.parameters.tensors(), Images(kBatch, kSize).narrow(0, 0, 0), true)
      .sum()
      .backward();
  EXPECT_TRUE(network.parameters.buffers().equal(before));
}

// Their mean over many draws is the network without it, as far as a network is linear in them; each
// draw differs from it, and the same seed gives the same.
TEST_P(ImageNetworksTest, StochasticDepthLeavesBranchesOutInTrainingAlone) {
  const at::NoGradGuard no_gradients;
  Network plain(GetParam()), network(GetParam(), kSize, 0.5);
  const at::Tensor images = Images(kBatch, kSize);
  const auto& weights = network.parameters.tensors();
  EXPECT_TRUE(network.Forward(weights, images, false)
                  .equal(plain.Forward(plain.parameters.tensors(), images, false)));
  const at::Tensor first = network.Forward(weights, images, true, 1);
  EXPECT_TRUE(first.equal(network.Forward(weights, images, true, 1)));
  EXPECT_FALSE(first.allclose(network.Forward(weights, images, true, 2), 1e-3, 1e-3));
}

INSTANTIATE_TEST_SUITE_P(Architectures, ImageNetworksTest,
                         testing::Values("vit_tiny_patch16_224", "convnext_atto", "convnext_tiny",
                                         "efficientnet_b0"),
                         [](const auto& info) { return std::string(info.param); });

// 1.4 times 64 pixels are 89.6; six patches have 96.
TEST(VitTest, AnotherSizeOfAViewIsOfWholePatches) {
  const at::NoGradGuard no_gradients;
  Network scaled("vit_tiny_patch16_224", kSize, 0, {1.4}), plain("vit_tiny_patch16_224");
  const at::Tensor images = Images(2, kSize);
  const at::Tensor larger = at::_upsample_bilinear2d_aa(images, {96, 96}, /*align_corners=*/false);
  const at::Tensor out = scaled.Forward(scaled.parameters.tensors(), images, /*training=*/false);
  const at::Tensor wanted = plain.Forward(plain.parameters.tensors(), larger, /*training=*/false);
  EXPECT_LT(out.sub(wanted).abs().max().item<double>(), 1e-5);
}

TEST(VitTest, ImagesThatAreNoWholePatchesAreRefused) {
  Parameters parameters;
  EXPECT_THAT(
      CreateModel(SpecOf("vit_tiny_patch16_224"), ShapeOf(40), parameters).status().message(),
      HasSubstr("data.image.size: 40 is no multiple of 16, as vit_tiny_patch16_224 needs"));
}

TEST(ImageNetworkTest, DepthsTellTheBodyFromTheHead) {
  for (const auto& [architecture, depth, head] :
       {std::make_tuple("resnet18", 8, "fc."), std::make_tuple("vit_tiny_patch16_224", 12, "head."),
        std::make_tuple("convnext_tiny", 18, "head.fc."),
        std::make_tuple("efficientnet_b0", 16, "classifier.")}) {
    SCOPED_TRACE(architecture);
    Parameters parameters;
    ASSERT_TRUE(CreateModel(SpecOf(architecture), ShapeOf(kSize), parameters).ok());
    int64_t most = 0;
    for (const ParameterInfo& info : parameters.layout()) {
      most = std::max(most, info.depth);
      EXPECT_EQ(info.depth == kHeadDepth, info.name.rfind(head, 0) == 0) << info.name;
      const bool vector =
          info.shape.size() == 1 || info.name == "cls_token" || info.name == "pos_embed";
      EXPECT_EQ(info.decays, !vector) << info.name;
    }
    EXPECT_EQ(most, depth);
  }
}

}  // namespace
}  // namespace traind
