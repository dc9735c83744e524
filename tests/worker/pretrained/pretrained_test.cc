#include "worker/pretrained/pretrained_weights.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_split.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <deque>
#include <limits>
#include <string>
#include <vector>

#include "common/base/durable_file.h"
#include "worker/checkpoint/safetensors.h"
#include "worker/pretrained/float_values.h"
#include "worker/pretrained/weights_plan.h"

namespace traind {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

ParameterInfo Parameter(const std::string& name, std::vector<int64_t> shape) {
  int64_t size = 1;
  for (const int64_t extent : shape) size *= extent;
  return {name, std::move(shape), size};
}

// Builds a file on disk, tensor by tensor.
class Weights {
 public:
  Weights& Add(const std::string& name, DType dtype, std::vector<int64_t> shape,
               std::string bytes) {
    data_.push_back(std::move(bytes));
    tensors_.push_back({name, {dtype, std::move(shape), data_.back()}});
    return *this;
  }
  Weights& Floats(const std::string& name, std::vector<int64_t> shape,
                  const std::vector<float>& values) {
    return Add(name, DType::kF32, std::move(shape),
               std::string(reinterpret_cast<const char*>(values.data()), values.size() * 4));
  }
  // Adds a tensor of 0, 1, 2, ...
  Weights& Counted(const std::string& name, std::vector<int64_t> shape, float from = 0) {
    std::vector<float> values(static_cast<size_t>(Parameter("", shape).size));
    for (float& value : values) value = from++;
    return Floats(name, std::move(shape), values);
  }

  std::string Bytes() const { return EncodeSafetensors(tensors_, {}); }

 private:
  std::deque<std::string> data_;
  std::vector<NamedTensorView> tensors_;
};

class PretrainedTest : public testing::Test {
 protected:
  // Loads into values that start as -1.
  absl::StatusOr<PretrainedReport> Take(const std::string& bytes, const ParameterLayout& layout,
                                        std::map<std::string, std::string> map,
                                        int64_t pieces = 0) {
    const std::string path = testing::TempDir() + "/weights.safetensors";
    EXPECT_TRUE(WriteFileDurably(path, bytes).ok());
    PretrainedSpec spec;
    spec.file = "bert.safetensors";
    spec.sha256 = sha256_.empty() ? Sha256Hex(bytes) : sha256_;
    spec.map = std::move(map);
    values_.assign(static_cast<size_t>(TotalSize(layout)), -1);
    return LoadPretrained(spec, path, layout, pieces, absl::MakeSpan(values_));
  }
  std::vector<std::string> Mistakes(const std::string& bytes, const ParameterLayout& layout,
                                    std::map<std::string, std::string> map, int64_t pieces = 0) {
    const auto taken = Take(bytes, layout, std::move(map), pieces);
    EXPECT_TRUE(absl::IsInvalidArgument(taken.status())) << taken.status();
    return absl::StrSplit(taken.status().message(), "; ");
  }

  std::vector<float> values_;
  std::string sha256_;
};

TEST_F(PretrainedTest, WithoutAMapEqualNamesBelongTogether) {
  const std::string bytes =
      Weights().Counted("a", {2}).Counted("head", {3, 2}).Counted("other", {1}).Bytes();
  const auto report =
      Take(bytes, {Parameter("a", {2}), Parameter("b", {1}), Parameter("head", {2, 2})}, {});
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_THAT(values_, ElementsAre(0, 1, -1, -1, -1, -1, -1));
  EXPECT_EQ(report->Share(), "1/3");
  EXPECT_THAT(report->kept, ElementsAre("b", "head"));
  EXPECT_THAT(report->unused, ElementsAre("other"));
  EXPECT_EQ(report->Text(),
            "1 of 3 parameters (2 of 7 numbers) come from the file; these start at random: b, head "
            "(head is "
            "[2, 2] here, but [3, 2] in the file); unused tensors of the file: other");
  EXPECT_THAT(report->Text(1), HasSubstr("start at random: b and 1 more"));
}

TEST_F(PretrainedTest, TensorsAreJoinedCutAndTransposed) {
  const std::string bytes = Weights()
                                .Counted("q", {1, 2})
                                .Counted("k", {2, 2}, 10)
                                .Counted("m", {2, 3}, 20)
                                .Counted("rows", {4, 1}, 30)
                                .Bytes();
  const auto report =
      Take(bytes,
           {Parameter("qk", {3, 2}), Parameter("mt", {3, 2}), Parameter("some", {2, 1}),
            Parameter("one", {3, 1})},
           {{"qk", "q, k"}, {"mt", "m^T"}, {"some", "rows[1:3]"}, {"one", "m[1:]^T"}});
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_THAT(values_,
              ElementsAre(0, 1, 10, 11, 12, 13, 20, 23, 21, 24, 22, 25, 31, 32, 23, 24, 25));
  EXPECT_THAT(report->kept, IsEmpty());
  EXPECT_THAT(report->unused, IsEmpty());
}

TEST_F(PretrainedTest, ScalarsAndEmptyTensorsAreTaken) {
  const auto report = Take(Weights().Counted("s", {}, 5).Counted("e", {0, 3}).Bytes(),
                           {Parameter("s", {}), Parameter("e", {0, 3})}, {});
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_THAT(values_, ElementsAre(5));
}

TEST_F(PretrainedTest, AllMistakesAreReportedWithBothShapes) {
  const std::string bytes = Weights()
                                .Counted("w", {2, 3})
                                .Counted("v", {3})
                                .Add("ids", DType::kI64, {1}, std::string(8, '\0'))
                                .Bytes();
  const ParameterLayout layout = {
      Parameter("a", {3, 2}), Parameter("b", {3}), Parameter("c", {1}),   Parameter("d", {2, 3}),
      Parameter("e", {4, 3}), Parameter("f", {3}), Parameter("good", {3})};
  EXPECT_THAT(Mistakes(bytes, layout,
                       {{"a", "w"},
                        {"b", "gone"},
                        {"c", "ids"},
                        {"d", "w[0:3]"},
                        {"e", "w, v"},
                        {"f", "v^T"},
                        {"nobody.{i}", "w"},
                        {"good", "v"}}),
              ElementsAre(AllOf(HasSubstr("model.pretrained: bert.safetensors: "),
                                HasSubstr("nobody.{i}: the model has no such parameter")),
                          "a [3, 2]: \"w\" is [2, 3]", "b [3]: \"gone\" is not in the file",
                          "c [1]: \"ids\" [1] is I64, not F32, F16 or BF16",
                          "d [2, 3]: \"w\" [2, 3] has no rows 0 to 2",
                          "e [4, 3]: \"v\" [3] cannot follow [2, 3] along the first axis",
                          "f [3]: \"v\" [3] is not a matrix, so it cannot be transposed"));
}

TEST_F(PretrainedTest, TakingNothingIsAMistake) {
  EXPECT_THAT(Mistakes(Weights().Counted("x", {1}).Bytes(), {Parameter("a", {1})}, {})[0],
              HasSubstr("no tensor has the name of a parameter"));
  EXPECT_THAT(Mistakes(Weights().Counted("a", {2}).Bytes(), {Parameter("a", {1})}, {})[0],
              HasSubstr("a is [1] here, but [2] in the file"));
  EXPECT_THAT(
      Mistakes(Weights().Counted("a", {1}).Bytes(), {Parameter("a", {1})}, {{"a", "skip"}})[0],
      HasSubstr("nothing but skips"));
}

TEST_F(PretrainedTest, TokensAreOnlyKnownWithTheirTokenizer) {
  const std::string bytes = Weights().Counted("emb", {5, 2}).Counted("x", {1}).Bytes();
  const ParameterLayout layout = {Parameter("tokens.weight", {4, 2}), Parameter("x", {1})};
  EXPECT_THAT(Mistakes(bytes, layout, {{"tokens.weight", "emb[0:4]"}})[0],
              HasSubstr("data.text.model_file"));
  // Three pieces, and the row of an empty text, which starts at random.
  ASSERT_TRUE(Take(bytes, layout, {{"tokens.weight", "emb[0:3]"}}, 3).ok());
  EXPECT_THAT(values_, ElementsAre(0, 1, 2, 3, 4, 5, -1, -1, -1));
  ASSERT_TRUE(Take(bytes, layout, {{"tokens.weight", "emb[1:]"}}, 3).ok());
  EXPECT_THAT(values_, ElementsAre(2, 3, 4, 5, 6, 7, 8, 9, -1));
  EXPECT_THAT(Mistakes(bytes, layout, {{"tokens.weight", "emb"}}, 3)[0],
              HasSubstr("tokens.weight [4, 2]: \"emb\" is [5, 2] (the tokenizer has 3 pieces"));
  // Equal names are not enough, because each fold learns other words.
  const std::string own = Weights().Counted("tokens.weight", {4, 2}).Counted("x", {1}).Bytes();
  const auto report = Take(own, layout, {});
  ASSERT_TRUE(report.ok());
  EXPECT_THAT(report->kept, ElementsAre("tokens.weight"));
  EXPECT_THAT(report->Text(), HasSubstr("to tokens that each fold learns itself"));
}

TEST_F(PretrainedTest, NumbersThatAreNotFiniteAreCounted) {
  const float nan = std::nanf(""), infinite = std::numeric_limits<float>::infinity();
  const std::string bytes = Weights()
                                .Floats("bad", {4}, {nan, 1, -infinite, nan})
                                .Add("half", DType::kF16, {1}, std::string("\x00\x7c", 2))
                                .Floats("aside", {1}, {nan})
                                .Bytes();
  EXPECT_THAT(Mistakes(bytes, {Parameter("bad", {4}), Parameter("half", {1})}, {}),
              ElementsAre(HasSubstr("\"bad\": 2 of its 4 values are NaN and 1 are infinite"),
                          "\"half\": 0 of its 1 values are NaN and 1 are infinite"));
}

TEST_F(PretrainedTest, AFileThatChangedOrIsNoneIsNamed) {
  EXPECT_THAT(Mistakes("rubbish, and not little of it", {Parameter("a", {1})}, {})[0],
              HasSubstr("bert.safetensors: safetensors: "));
  sha256_ = "0";
  EXPECT_THAT(Mistakes(Weights().Counted("a", {1}).Bytes(), {Parameter("a", {1})}, {})[0],
              HasSubstr("is not the file that was submitted"));
}

TEST(FloatValuesTest, EveryHalfIsItsOwnFloat) {
  for (int bits = 0; bits < 1 << 16; ++bits) {
    const int exponent = bits >> 10 & 31, fraction = bits & 1023;
    const double sign = bits & 0x8000 ? -1 : 1;
    const float value = HalfToFloat(static_cast<uint16_t>(bits));
    if (exponent == 31) {
      ASSERT_TRUE(fraction == 0 ? std::isinf(value) : std::isnan(value)) << bits;
      continue;
    }
    const double wanted = sign * (exponent == 0 ? std::ldexp(fraction, -24)
                                                : std::ldexp(1024 + fraction, exponent - 25));
    ASSERT_EQ(static_cast<double>(value), wanted) << bits;
    ASSERT_EQ(std::signbit(value), sign < 0) << bits;
  }
}

TEST(FloatValuesTest, EveryBrainFloatIsTheUpperHalfOfAFloat) {
  std::string data;
  for (int bits = 0; bits < 1 << 16; ++bits) {
    data.push_back(static_cast<char>(bits));
    data.push_back(static_cast<char>(bits >> 8));
  }
  std::vector<float> values(1 << 16);
  ToFloats(DType::kBF16, data, absl::MakeSpan(values));
  for (uint32_t bits = 0; bits < 1 << 16; ++bits) {
    uint32_t found;
    std::memcpy(&found, &values[bits], sizeof found);
    ASSERT_EQ(found, bits << 16);
  }
}

}  // namespace
}  // namespace traind
