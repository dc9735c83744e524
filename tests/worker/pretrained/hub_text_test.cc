// Folders as Hugging Face's transformers saves them, against its answers.
#include <ATen/ops/from_blob.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_replace.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "common/base/durable_file.h"
#include "common/data/weights/text_config.h"
#include "tests/worker/model/golden.h"
#include "tests/worker/model/model_of.h"
#include "worker/checkpoint/safetensors.h"
#include "worker/model/kernels/packed_attention.h"
#include "worker/model/networks/model.h"
#include "worker/pretrained/pretrained_weights.h"
#include "worker/pretrained/weights_plan.h"

namespace traind {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// The same as in tests/golden/hub_texts_golden.py.
constexpr int64_t kVocabulary = 432, kLongest = 24, kClasses = 3;

std::string Folder(const std::string& family) {
  return absl::StrCat("tests/golden/texts/", family);
}

ModelSpec SpecOf(const std::string& family) {
  ModelSpec spec = ModelOf("text", "{}");
  spec.text->architecture = family;
  spec.pretrained.emplace();
  spec.pretrained->folder = Folder(family);
  const auto config = ReadFile(absl::StrCat(Folder(family), "/config.json"));
  EXPECT_TRUE(config.ok()) << config.status();
  spec.pretrained->config = config.value_or("");
  return spec;
}

ModelShape Shape() {
  ModelShape shape;
  shape.vocabulary = kVocabulary + 1;
  shape.max_tokens = kLongest;
  shape.outputs = kClasses;
  return shape;
}

absl::StatusOr<PretrainedReport> Load(const std::string& family, const ParameterLayout& layout,
                                      std::vector<float>& values) {
  PretrainedSpec pretrained;
  pretrained.file = absl::StrCat(Folder(family), "/model.safetensors");
  pretrained.sha256 = DigestFile(pretrained.file)->sha256;
  pretrained.architecture = family;
  return LoadPretrained(pretrained, pretrained.file, layout, kVocabulary, absl::MakeSpan(values));
}

at::Tensor Whole(const std::vector<float>& values) {
  return at::from_blob(const_cast<float*>(values.data()), {static_cast<int64_t>(values.size())},
                       at::kFloat)
      .to(at::kInt);
}

class HubTextTest : public testing::TestWithParam<const char*> {};

TEST_P(HubTextTest, AFolderAnswersAsInTheLibrary) {
  const std::string family = GetParam();
  const Golden golden(absl::StrCat("texts/", family, "/golden.safetensors"));
  Parameters parameters;
  const auto model = CreateModel(SpecOf(family), Shape(), parameters);
  ASSERT_TRUE(model.ok()) << model.status();
  parameters.Allocate(c10::kCPU);
  parameters.Initialize(1);
  std::vector<float> values = parameters.Pack(parameters.flat());
  const auto report = Load(family, parameters.layout(), values);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_THAT(report->kept, ElementsAre());
  EXPECT_THAT(report->unused, ElementsAre());
  parameters.Unpack(values, parameters.flat());
  Inputs inputs;
  inputs.tokens = Whole(golden.Floats("in.tokens"));
  inputs.ends = Whole(golden.Floats("in.ends"));
  const std::vector<float> wanted = golden.Floats("out");
  for (const bool training : {false, true}) {
    // In training too, once there is no dropout; activations may be computed again.
    ModelSpec spec = SpecOf(family);
    spec.text->dropout = 0;
    Parameters unused;
    const auto same = CreateModel(spec, Shape(), unused);
    ASSERT_TRUE(same.ok()) << same.status();
    EXPECT_TRUE((*same)->SetRecompute(training));
    const at::Tensor out =
        (*same)->Forward(parameters.tensors(), inputs, training).contiguous().detach();
    ASSERT_EQ(static_cast<size_t>(out.numel()), wanted.size());
    for (size_t i = 0; i < wanted.size(); ++i) {
      EXPECT_NEAR(out.const_data_ptr<float>()[i], wanted[i], 1e-4) << i;
    }
  }
}

TEST_P(HubTextTest, NoRowsGiveNoAnswers) {
  Parameters parameters;
  const auto model = CreateModel(SpecOf(GetParam()), Shape(), parameters);
  ASSERT_TRUE(model.ok()) << model.status();
  parameters.Allocate(c10::kCPU);
  parameters.Initialize(1);
  Inputs inputs;
  inputs.tokens = Whole({});
  inputs.ends = Whole({});
  const at::Tensor out = (*model)->Forward(parameters.tensors(), inputs, /*training=*/true);
  EXPECT_EQ(out.size(0), 0);
  EXPECT_EQ(out.size(1), kClasses);
  out.sum().backward();
}

INSTANTIATE_TEST_SUITE_P(Families, HubTextTest,
                         testing::Values("bert", "roberta", "distilbert", "deberta_v3",
                                         "modernbert"),
                         [](const auto& info) { return std::string(info.param); });

// A file with tensors of zeros under the names of the layout, changed by `name`.
class FileOfLayout {
 public:
  FileOfLayout(const ParameterLayout& layout,
               const std::function<std::string(const std::string&)>& name) {
    for (const ParameterInfo& parameter : layout) {
      const std::string there = name(parameter.name);
      if (there.empty()) continue;
      std::string& bytes =
          bytes_.emplace_back(static_cast<size_t>(parameter.size) * sizeof(float), '\0');
      file_.tensors[there] = {DType::kF32, parameter.shape, bytes};
    }
  }
  const SafetensorsFile& file() const { return file_; }
  SafetensorsFile& file() { return file_; }

 private:
  std::list<std::string> bytes_;
  SafetensorsFile file_;
};

class HubNamesTest : public testing::Test {
 protected:
  HubNamesTest() {
    Parameters parameters;
    EXPECT_TRUE(CreateModel(SpecOf("bert"), Shape(), parameters).ok());
    layout_ = parameters.layout();
  }
  absl::StatusOr<WeightsPlan> Plan(const SafetensorsFile& file) {
    return PlanWeights(layout_, file, NameMap(), kVocabulary, "bert");
  }
  ParameterLayout layout_;
};

TEST_F(HubNamesTest, AnEncoderAloneAndOldNamesAreFoundAndTheHeadStartsAtRandom) {
  FileOfLayout file(layout_, [](const std::string& name) {
    if (name.rfind("bert.", 0) != 0 || name.find("pooler") != std::string::npos) {
      return std::string();
    }
    return absl::StrReplaceAll(name.substr(5), {{"LayerNorm.weight", "LayerNorm.gamma"},
                                                {"LayerNorm.bias", "LayerNorm.beta"}});
  });
  const auto plan = Plan(file.file());
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_THAT(plan->kept, ElementsAre("bert.pooler.dense.weight", "bert.pooler.dense.bias",
                                      "classifier.weight", "classifier.bias"));
  EXPECT_TRUE(plan->unused.empty());
}

// make_log_bucket_position of the library, for the sizes of the published networks.
TEST(HubTextTest, DistancesHaveTheBucketsOfTheLibrary) {
  constexpr int64_t kSpan = 256, kFarthest = 512;
  const std::vector<float> wanted = Golden("texts/deberta_v3/golden.safetensors").Floats("buckets");
  ASSERT_EQ(wanted.size(), 2 * kFarthest - 1);
  for (const int64_t most : {kFarthest, int64_t{100}}) {
    const RelativeBuckets buckets(kSpan, most, kFarthest);
    EXPECT_LE(buckets.begin() + buckets.count(), 2 * kSpan);
    for (int64_t distance = 1 - most; distance < most; ++distance) {
      const auto of_library =
          static_cast<int64_t>(wanted[static_cast<size_t>(distance + kFarthest - 1)]);
      EXPECT_EQ(buckets.begin() + buckets.BucketOf(distance),
                std::min(of_library + kSpan, 2 * kSpan - 1))
          << distance;
    }
  }
  EXPECT_EQ(RelativeBuckets(kSpan, 100, kFarthest).count(), 199);
}

TEST_P(HubTextTest, AFileOfTheBodyAloneLacksThePrefixOfItsNames) {
  Parameters parameters;
  ASSERT_TRUE(CreateModel(SpecOf(GetParam()), Shape(), parameters).ok());
  const std::string body(TextBodyPrefix(GetParam()));
  ASSERT_FALSE(body.empty());
  FileOfLayout file(parameters.layout(), [&](const std::string& name) {
    return name.rfind(body, 0) == 0 ? name.substr(body.size()) : std::string();
  });
  const auto plan = [&] {
    return PlanWeights(parameters.layout(), file.file(), NameMap(), kVocabulary, GetParam());
  };
  const auto whole = plan();
  ASSERT_TRUE(whole.ok()) << whole.status();
  EXPECT_TRUE(whole->unused.empty());
  EXPECT_FALSE(whole->kept.empty());
  for (const std::string& name : whole->kept) EXPECT_NE(name.rfind(body, 0), 0) << name;
  const std::string lost = file.file().tensors.begin()->first;
  file.file().tensors.erase(lost);
  EXPECT_THAT(plan().status().message(), HasSubstr(lost + "\" is not in the file"));
}

TEST_F(HubNamesTest, AHeadOfOtherClassesStartsAtRandomAndABodyMustFit) {
  FileOfLayout file(layout_, [](const std::string& name) { return name; });
  file.file().tensors["classifier.bias"].shape = {5};
  auto plan = Plan(file.file());
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_THAT(plan->kept, ElementsAre("classifier.bias"));
  EXPECT_THAT(plan->differs, ElementsAre(HasSubstr("[5] in the file, but [3] in this network")));
  const std::string bias = "bert.encoder.layer.1.output.dense.bias";
  file.file().tensors[bias].shape = {17};
  file.file().tensors.erase("bert.embeddings.LayerNorm.weight");
  plan = Plan(file.file());
  EXPECT_THAT(plan.status().message(),
              HasSubstr(bias + " is [17] in the file, but [16] in this network"));
  EXPECT_THAT(plan.status().message(),
              HasSubstr("\"bert.embeddings.LayerNorm.weight\" is not in the file"));
}

TEST(HubImageTest, TheBodyOfAResnetMustFitAndCountsOfBatchesAreNoWeights) {
  ModelSpec spec = ModelOf("cnn", "{}");
  spec.cnn->architecture = "resnet18";
  ModelShape shape;
  shape.image = {3, 32, 32};
  shape.outputs = kClasses;
  Parameters parameters;
  ASSERT_TRUE(CreateModel(spec, shape, parameters).ok());
  FileOfLayout file(parameters.layout(),
                    [](const std::string& name) { return name == "fc.bias" ? "" : name; });
  const auto plan = [&] {
    return PlanWeights(parameters.layout(), file.file(), NameMap(), 0, "resnet18");
  };
  file.file().tensors["fc.weight"].shape = {1000, 512};
  file.file().tensors["bn1.num_batches_tracked"].dtype = DType::kI64;
  ASSERT_TRUE(plan().ok()) << plan().status();
  EXPECT_THAT(plan()->kept, ElementsAre("fc.weight", "fc.bias"));
  EXPECT_THAT(plan()->differs, ElementsAre(HasSubstr("fc.weight is [1000, 512] in the file")));
  EXPECT_TRUE(plan()->unused.empty());
  file.file().tensors.erase("layer2.0.downsample.1.running_mean");
  EXPECT_EQ(plan().status().message(), "\"layer2.0.downsample.1.running_mean\" is not in the file");
}

TEST_F(HubNamesTest, ATokenizerOrTextsThatDoNotFitAreRefused) {
  ModelShape shape = Shape();
  Parameters parameters;
  shape.vocabulary += 1;
  EXPECT_THAT(
      CreateModel(SpecOf("bert"), shape, parameters).status().message(),
      HasSubstr("the tokenizer has ids up to 432, but the network has a vocab_size of 432"));
  shape = Shape();
  shape.max_tokens = kLongest + 1;
  EXPECT_THAT(CreateModel(SpecOf("roberta"), shape, parameters).status().message(),
              HasSubstr("data.text.max_tokens: 25 is above 24"));
  ModelSpec spec = SpecOf("bert");
  spec.pretrained.reset();
  EXPECT_THAT(CreateModel(spec, Shape(), parameters).status().message(),
              HasSubstr("its sizes are in the config.json of model.pretrained.folder"));
}

}  // namespace
}  // namespace traind
