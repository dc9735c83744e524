// Networks that users supply, made here as users would make them.
#include "worker/model/networks/script.h"

#include <ATen/ops/full.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>
#include <absl/strings/str_cat.h>
#include <caffe2/serialize/inline_container.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/jit/api/module.h>

#include <cmath>
#include <fstream>
#include <string>
#include <vector>

#include "common/base/durable_file.h"
#include "tests/worker/model/model_of.h"
#include "worker/learner/learner.h"

namespace traind {
namespace {

using ::testing::HasSubstr;
namespace jit = torch::jit;

constexpr char kLinear[] = R"(
def forward(self, numeric):
    return torch.matmul(numeric, self.weight) + self.bias
)";

jit::Module LinearModule(const std::string& code = kLinear) {
  jit::Module module("Linear");
  module.register_parameter("weight", at::full({3, 2}, 0.1), false);
  module.register_parameter("bias", at::zeros({2}), false);
  module.define(code);
  return module;
}

plain::ScriptSpec Saved(const jit::Module& module) {
  static int number = 0;
  plain::ScriptSpec spec;
  spec.file = absl::StrCat(::testing::TempDir(), "/script-", ++number, ".pt");
  module.save(spec.file);
  spec.sha256 = Sha256Hex(*ReadFile(spec.file));
  return spec;
}

ModelShape Shape() {
  ModelShape shape;
  shape.numeric = 3;
  shape.outputs = 2;
  return shape;
}

std::string Refusal(const plain::ScriptSpec& spec, const ModelShape& shape) {
  const auto report = TryScript(spec, shape);
  EXPECT_EQ(report.status().code(), absl::StatusCode::kInvalidArgument) << report.status();
  return std::string(report.status().message());
}

LearnerOptions Options(const plain::ScriptSpec& spec) {
  LearnerOptions options;
  options.model.script = spec;
  options.shape = Shape();
  options.objective.loss = LossKind::kCrossEntropy;
  options.optimizer.kind = OptimizerKind::kSgd;
  options.optimizer.weight_decay = 0;
  options.clip_norm = 0;
  return options;
}

LearnerData Data(int64_t rows) {
  LearnerData data;
  data.rows.rows = rows;
  for (int64_t i = 0; i < rows * 3; ++i) {
    data.rows.numeric.push_back(std::sin(static_cast<float>(i) * 1.7f));
  }
  for (int64_t i = 0; i < rows; ++i) data.classes.push_back(data.rows.numeric[size_t(i) * 3] > 0);
  return data;
}

std::vector<int32_t> Order(int32_t rows) {
  std::vector<int32_t> order;
  for (int32_t i = 0; i < rows; ++i) order.push_back(i);
  return order;
}

TEST(ScriptTest, ALinearModuleLearnsAsTheFormulaSays) {
  const plain::ScriptSpec spec = Saved(LinearModule());
  const auto report = TryScript(spec, Shape());
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->parameters, 8);
  const auto learner = Learner::Create(Options(spec), Data(8));
  ASSERT_TRUE(learner.ok()) << learner.status();
  EXPECT_EQ((*learner)->layout()[0].name, "module.weight");
  ASSERT_TRUE((*learner)->SetOrder(Order(8)).ok());
  const std::vector<float> before = (*learner)->Save()->slots[kWeightsSlot];
  EXPECT_FLOAT_EQ(before[0], 0.1f);  // the value in the file, for any seed
  ASSERT_TRUE((*learner)->Step({0, 8, 8, 0.5, 1}).ok());
  const std::vector<float> after = (*learner)->Save()->slots[kWeightsSlot];
  // Equal logits: the gradient of class 0's bias is the mean of (1/2 - [class is 0]).
  const LearnerData data = Data(8);
  double bias = 0;
  for (const int32_t label : data.classes) bias += 0.5 - (label == 0);
  EXPECT_NEAR(after[6], -0.5 * bias / 8, 1e-6);
  // The best weights do not change while training goes on.
  ASSERT_TRUE((*learner)->KeepBest().ok());
  ASSERT_TRUE((*learner)->Step({0, 8, 8, 0.5, 1}).ok());
  std::vector<float> best(2), last(2);
  ASSERT_TRUE(
      (*learner)->Predict(Weights::kBest, std::vector<int32_t>{0}, absl::MakeSpan(best)).ok());
  ASSERT_TRUE(
      (*learner)->Predict(Weights::kLast, std::vector<int32_t>{0}, absl::MakeSpan(last)).ok());
  EXPECT_NE(best[0], last[0]);
  EXPECT_NEAR(best[0] + best[1], 1, 1e-6);
}

TEST(ScriptTest, RunningStatisticsAreSavedAndDropoutFollowsItsSeed) {
  jit::Module module("Normed");
  module.register_parameter("weight", at::full({3, 2}, 0.1), false);
  module.register_buffer("mean", at::zeros({3}));
  module.register_buffer("var", at::full({3}, 1.0));
  module.register_buffer("count", at::zeros({}, at::kLong));
  module.register_attribute("training", c10::BoolType::get(), true);
  module.define(R"(
def forward(self, numeric):
    x = torch.batch_norm(numeric, None, None, self.mean, self.var, self.training, 0.1, 1e-5, False)
    x = torch.dropout(x, 0.5, self.training)
    return torch.matmul(x, self.weight)
)");
  const plain::ScriptSpec spec = Saved(module);
  ASSERT_TRUE(TryScript(spec, Shape()).ok()) << TryScript(spec, Shape()).status();
  std::vector<std::vector<float>> weights;
  for (const uint64_t dropout_seed : {5, 5, 6}) {
    const auto learner = Learner::Create(Options(spec), Data(8));
    ASSERT_TRUE(learner.ok()) << learner.status();
    ASSERT_TRUE((*learner)->SetOrder(Order(8)).ok());
    ASSERT_TRUE((*learner)->Step({0, 8, 8, 0.5, dropout_seed}).ok());
    weights.push_back((*learner)->Save()->slots[kWeightsSlot]);
    // weight, mean and var are saved; the count of batches stays inside the module.
    ASSERT_EQ(weights.back().size(), 12u);
    EXPECT_NE(weights.back()[6], 0);
    EXPECT_NE(weights.back()[9], 1);
  }
  EXPECT_EQ(weights[0], weights[1]);
  EXPECT_NE(weights[0], weights[2]);
}

TEST(ScriptTest, ErrorsNameTheirCause) {
  ModelShape wide = Shape();
  wide.outputs = 5;
  EXPECT_THAT(Refusal(Saved(LinearModule()), wide), HasSubstr("gives [7, 2], not [7, 5]"));
  wide = Shape();
  wide.numeric = 4;
  EXPECT_THAT(Refusal(Saved(LinearModule()), wide),
              HasSubstr("does not run: mat1 and mat2 shapes cannot be multiplied (7x4 and 3x2); "
                        "numeric has 4 columns and codes has 0\n"));
  EXPECT_THAT(
      Refusal(Saved(LinearModule("def forward(self, pixels):\n    return pixels\n")), Shape()),
      HasSubstr("forward takes 'pixels'; its arguments must be named numeric or codes"));
  EXPECT_THAT(Refusal(Saved(LinearModule("def predict(self, x):\n    return x\n")), Shape()),
              HasSubstr("has no forward"));
  EXPECT_THAT(
      Refusal(Saved(LinearModule("def forward(self, numeric):\n    return numeric[:, 0:2]\n")),
              Shape()),
      HasSubstr("depends on no parameter"));
  EXPECT_THAT(Refusal(Saved(LinearModule("def forward(self, numeric):\n"
                                         "    torch.save(numeric, '/tmp/x')\n"
                                         "    return torch.matmul(numeric, self.weight)\n")),
                      Shape()),
              HasSubstr("uses aten::save"));
  EXPECT_THAT(Refusal(Saved(LinearModule("def forward(self, codes):\n"
                                         "    return torch.matmul(codes.float(), self.weight)\n")),
                      Shape()),
              HasSubstr("no categorical column"));
  jit::Module twice("Double");
  twice.register_parameter("weight", at::zeros({3, 2}, at::kDouble), false);
  twice.define(
      "def forward(self, numeric):\n    return torch.matmul(numeric.double(), self.weight)\n");
  EXPECT_THAT(Refusal(Saved(twice), Shape()), HasSubstr("module.weight is Double; only float32"));
  plain::ScriptSpec spec = Saved(LinearModule());
  spec.sha256[0] ^= 1;
  EXPECT_THAT(Refusal(spec, Shape()), HasSubstr("its digest differs"));
  std::ofstream(spec.file) << "no module";
  spec.sha256 = Sha256Hex("no module");
  EXPECT_THAT(Refusal(spec, Shape()), HasSubstr("is not a TorchScript module"));
}

TEST(ScriptTest, AFileOfTorchSaveIsToldFromAModule) {
  plain::ScriptSpec spec;
  spec.file = absl::StrCat(::testing::TempDir(), "/saved.pt");
  caffe2::serialize::PyTorchStreamWriter writer(spec.file);
  writer.writeRecord("data.pkl", "x", 1);
  writer.writeEndOfFile();
  spec.sha256 = Sha256Hex(*ReadFile(spec.file));
  EXPECT_THAT(Refusal(spec, Shape()),
              HasSubstr("but a file of torch.save; write one with torch.jit.script(model)"));
}

}  // namespace
}  // namespace traind
