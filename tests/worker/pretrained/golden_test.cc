// Models with weights that other programs have trained, against PyTorch's answers.
#include <ATen/core/grad_mode.h>
#include <ATen/ops/from_blob.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/base/durable_file.h"
#include "tests/worker/model/golden.h"
#include "tests/worker/model/model_of.h"
#include "worker/model/networks/model.h"
#include "worker/pretrained/pretrained_weights.h"

namespace traind {
namespace {

constexpr char kFile[] = "tests/golden/pretrained.safetensors";
// The same as in tests/golden/pretrained_golden.py.
constexpr int64_t kBatch = 8, kPieces = 29, kLongest = 90, kNumeric = 3, kSize = 9;

template <class T>
at::Tensor Copy(const std::vector<T>& data, at::IntArrayRef shape, at::ScalarType type) {
  return at::from_blob(const_cast<T*>(data.data()), shape, type).clone();
}

// Returns the network's answers with the file's weights; before that its weights are random.
std::vector<float> Answers(const ModelSpec& spec, const ModelShape& shape,
                           const std::map<std::string, std::string>& map, int64_t pieces,
                           const Inputs& inputs) {
  Parameters parameters;
  const auto model = CreateModel(spec, shape, parameters);
  EXPECT_TRUE(model.ok()) << model.status();
  parameters.Allocate(c10::kCPU);
  parameters.Initialize(1);
  std::vector<float> values = parameters.Pack(parameters.flat());
  PretrainedSpec pretrained;
  pretrained.file = kFile;
  pretrained.sha256 = DigestFile(kFile)->sha256;
  pretrained.map = map;
  const auto report =
      LoadPretrained(pretrained, kFile, parameters.layout(), pieces, absl::MakeSpan(values));
  EXPECT_TRUE(report.ok()) << report.status();
  if (!report.ok()) return {};
  EXPECT_TRUE(report->kept.empty()) << report->Text();
  parameters.Unpack(values, parameters.flat());
  const at::NoGradGuard no_gradients;
  const at::Tensor out =
      (*model)->Forward(parameters.tensors(), inputs, /*training=*/false).contiguous();
  return {out.const_data_ptr<float>(), out.const_data_ptr<float>() + out.numel()};
}

void ExpectNear(const std::vector<float>& found, const std::vector<float>& wanted) {
  ASSERT_EQ(found.size(), wanted.size());
  for (size_t i = 0; i < found.size(); ++i) {
    EXPECT_NEAR(found[i], wanted[i], 1e-5 * (1 + std::abs(wanted[i]))) << i;
  }
}

std::map<std::string, std::string> EncoderMap(const std::string& file, const std::string& query,
                                              const std::string& key, const std::string& value) {
  const std::string theirs = file + ".encoder.layer.{i}.", ours = "encoder.layers.{i}.";
  std::map<std::string, std::string> map = {
      {"tokens.weight", file + ".embeddings.word_embeddings.weight[0:29]"},
      {ours + "linear1.weight", theirs + "intermediate.dense.weight^T"},
      {ours + "linear1.bias", theirs + "intermediate.dense.bias"},
      {"embeddings.{i}.weight", file + ".own.embeddings.{i}.weight"},
      {"columns.*", file + ".own.columns.*"},
      {"head.*", file + ".own.head.*"},
  };
  for (const std::string kind : {"weight", "bias"}) {
    const std::string self = theirs + "attention.self.";
    map[ours + "self_attn.in_proj_" + kind] = self + query + "." + kind + ", " + self + key + "." +
                                              kind + ", " + self + value + "." + kind;
    map[ours + "self_attn.out_proj." + kind] = theirs + "attention.output.dense." + kind;
    map[ours + "linear2." + kind] = theirs + "output.dense." + kind;
    map[ours + "norm1." + kind] = theirs + "attention.norm." + kind;
    map[ours + "norm2." + kind] = theirs + "norm." + kind;
  }
  return map;
}

void ExpectEncoder(const std::string& file, bool disentangled, int64_t outputs,
                   std::map<std::string, std::string> map) {
  const Golden golden("pretrained.safetensors");
  ModelSpec spec = ModelOf("text", R"({"width":16,"feedforward":24})");
  if (!disentangled) spec.text->attention = "plain";
  ModelShape shape;
  shape.vocabulary = kPieces + 1;
  shape.max_tokens = kLongest;
  shape.outputs = outputs;
  shape.numeric = kNumeric;
  shape.cardinalities = {6};
  Inputs inputs;
  const std::vector<int32_t> tokens = golden.Integers("in.tokens");
  inputs.tokens = Copy(tokens, {static_cast<int64_t>(tokens.size())}, at::kInt);
  inputs.ends = Copy(golden.Integers("in.ends"), {kBatch}, at::kInt);
  inputs.numeric = Copy(golden.Floats("in.numeric"), {kBatch, kNumeric}, at::kFloat);
  inputs.codes = Copy(golden.Integers("in.codes"), {kBatch, 1}, at::kInt);
  ExpectNear(Answers(spec, shape, map, kPieces, inputs), golden.Floats("out." + file));
}

TEST(PretrainedGoldenTest, ABertAnswersAsInPyTorch) {
  auto map = EncoderMap("bert", "query", "key", "value");
  map["position"] = "bert.embeddings.position_embeddings.weight[2:92]";
  ExpectEncoder("bert", /*disentangled=*/false, 1, map);
}

TEST(PretrainedGoldenTest, ADebertaAnswersAsInPyTorch) {
  auto map = EncoderMap("deberta", "query_proj", "key_proj", "value_proj");
  map["relative.weight"] = "deberta.encoder.rel_embeddings.weight";
  ExpectEncoder("deberta", /*disentangled=*/true, 3, map);
}

TEST(PretrainedGoldenTest, AResnetAnswersAsInPyTorchByItsRunningStatistics) {
  const Golden golden("pretrained.safetensors");
  const ModelSpec spec = ModelOf("cnn", R"({"width":8,"blocks":[1,2,1]})");
  ModelShape shape;
  shape.image = {3, kSize, kSize};
  shape.outputs = 4;
  std::map<std::string, std::string> map = {{"stem.conv.weight", "resnet.conv1.weight"},
                                            {"stem.norm.*", "resnet.bn1.*"},
                                            {"head.*", "resnet.fc.*"}};
  for (const std::string stage : {"0", "1", "2"}) {
    const std::string ours = "stages." + stage + ".{b}.";
    const std::string theirs = "resnet.layer" + std::to_string(std::stoi(stage) + 1) + ".{b}.";
    map[ours + "first.conv.weight"] = theirs + "conv1.weight";
    map[ours + "first.norm.*"] = theirs + "bn1.*";
    map[ours + "second.conv.weight"] = theirs + "conv2.weight";
    map[ours + "second.norm.*"] = theirs + "bn2.*";
    if (stage == "0") continue;
    map["stages." + stage + ".0.shortcut.conv.weight"] =
        "resnet.layer" + std::to_string(std::stoi(stage) + 1) + ".0.downsample.0.weight";
    map["stages." + stage + ".0.shortcut.norm.*"] =
        "resnet.layer" + std::to_string(std::stoi(stage) + 1) + ".0.downsample.1.*";
  }
  Inputs inputs;
  inputs.image =
      Copy(golden.Floats("in.images"), {kBatch, kSize, kSize, 3}, at::kFloat).permute({0, 3, 1, 2});
  ExpectNear(Answers(spec, shape, map, 0, inputs), golden.Floats("out.resnet"));
}

}  // namespace
}  // namespace traind
