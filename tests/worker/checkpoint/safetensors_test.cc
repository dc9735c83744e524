#include "worker/checkpoint/safetensors.h"

#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <utility>
#include <vector>

namespace traind {
namespace {

std::string Bytes(const std::vector<float>& values) {
  return std::string(reinterpret_cast<const char*>(values.data()), values.size() * 4);
}

// Makes a file with this header and this many bytes of data.
std::string File(const std::string& header, size_t data_bytes) {
  std::string file;
  for (int i = 0; i < 8; ++i) file.push_back(static_cast<char>(header.size() >> (8 * i)));
  return file + header + std::string(data_bytes, '\1');
}

// Returns the error message if the file is refused.
std::string Refusal(const std::string& file) {
  const auto parsed = ParseSafetensors(file);
  if (parsed.ok()) return "";
  EXPECT_TRUE(absl::IsDataLoss(parsed.status())) << parsed.status().ToString();
  return std::string(parsed.status().message());
}

std::string Tensor(const std::string& name, const std::string& shape, int64_t begin, int64_t end,
                   const std::string& dtype = "F32") {
  return absl::StrCat("\"", name, "\":{\"dtype\":\"", dtype, "\",\"shape\":", shape,
                      ",\"data_offsets\":[", begin, ",", end, "]}");
}

TEST(SafetensorsTest, WrittenTensorsAreReadBack) {
  const std::string a = Bytes({1, 2, 3, 4, 5, 6}), b = Bytes({-1});
  const std::string file = EncodeSafetensors(
      {{"layer.weight", {DType::kF32, {2, 3}, a}}, {"b", {DType::kF32, {}, b}}}, {{"job", "j"}});
  const auto parsed = ParseSafetensors(file);
  ASSERT_TRUE(parsed.ok()) << parsed.status().ToString();
  EXPECT_EQ(parsed->metadata.at("job"), "j");
  ASSERT_EQ(parsed->tensors.size(), 2u);
  EXPECT_EQ(parsed->tensors.at("layer.weight").shape, (std::vector<int64_t>{2, 3}));
  const auto values = FloatsOf(*parsed, "layer.weight", 6);
  ASSERT_TRUE(values.ok());
  EXPECT_EQ(*values, (std::vector<float>{1, 2, 3, 4, 5, 6}));
}

TEST(SafetensorsTest, DataStartsAtAMultipleOf64Bytes) {
  const std::string a = Bytes({1});
  for (const char* name : {"a", "ab", "abcdefghijklmnop"}) {
    const std::string file = EncodeSafetensors({{name, {DType::kF32, {1}, a}}}, {});
    EXPECT_EQ((file.size() - 4) % 64, 0u);
  }
}

TEST(SafetensorsTest, EmptyTensorsAndFilesWithoutTensorsAreValid) {
  EXPECT_EQ(Refusal(File("{}", 0)), "");
  EXPECT_EQ(
      Refusal(File("{" + Tensor("e", "[0,5]", 0, 0) + "," + Tensor("a", "[2]", 0, 8) + "}", 8)),
      "");
}

TEST(SafetensorsTest, EveryCutOfAFileIsRefused) {
  const std::string a = Bytes({1, 2, 3});
  const std::string file = EncodeSafetensors({{"a", {DType::kF32, {3}, a}}}, {{"k", "v"}});
  ASSERT_EQ(Refusal(file), "");
  for (size_t size = 0; size < file.size(); ++size) {
    EXPECT_NE(Refusal(file.substr(0, size)), "") << size;
  }
  EXPECT_NE(Refusal(file + "x"), "");
}

TEST(SafetensorsTest, HeadersThatAreTooLargeAreRefusedUnread) {
  std::string file(16, '\xff');
  EXPECT_TRUE(absl::StrContains(Refusal(file), "too large"));
  std::memset(file.data(), 0, 8);
  file[3] = 6;  // 96 MiB
  EXPECT_TRUE(absl::StrContains(Refusal(file), "too large"));
}

TEST(SafetensorsTest, HeadersThatAreNoObjectAreRefused) {
  for (const char* header :
       {"", " {}", "[]", "{", "{\"a\":}", "null", "{}x", "{\"a\":1}", "{\"a\":{}}",
        "{\"__metadata__\":[]}", "{\"__metadata__\":{\"a\":1}}"}) {
    EXPECT_NE(Refusal(File(header, 0)), "") << header;
  }
}

TEST(SafetensorsTest, DuplicateNamesAreRefused) {
  const std::string header = "{" + Tensor("a", "[1]", 0, 4) + "," + Tensor("a", "[1]", 0, 4) + "}";
  EXPECT_TRUE(absl::StrContains(Refusal(File(header, 4)), "\"a\" occurs twice"));
  EXPECT_NE(Refusal(File("{\"a\":{\"dtype\":\"F32\",\"dtype\":\"F32\",\"shape\":[1],"
                         "\"data_offsets\":[0,4]}}",
                         4)),
            "");
}

TEST(SafetensorsTest, DeepNestingIsRefused) {
  std::string header = "{\"a\":";
  for (int i = 0; i < 100'000; ++i) header += "[";
  EXPECT_NE(Refusal(File(header, 0)), "");
}

TEST(SafetensorsTest, TensorsMustFillTheDataWithoutHoleOrOverlap) {
  const auto with = [](const std::string& first, const std::string& second, size_t bytes) {
    return Refusal(File("{" + first + "," + second + "}", bytes));
  };
  EXPECT_EQ(with(Tensor("a", "[1]", 0, 4), Tensor("b", "[1]", 4, 8), 8), "");
  EXPECT_NE(with(Tensor("a", "[1]", 0, 4), Tensor("b", "[1]", 8, 12), 12), "");  // gap
  EXPECT_NE(with(Tensor("a", "[2]", 0, 8), Tensor("b", "[1]", 4, 8), 8), "");    // overlap
  EXPECT_NE(with(Tensor("a", "[1]", 0, 4), Tensor("b", "[1]", 0, 4), 4), "");    // same range
  EXPECT_NE(with(Tensor("a", "[1]", 0, 4), Tensor("b", "[1]", 4, 8), 12), "");   // unused rest
  EXPECT_NE(with(Tensor("a", "[1]", 4, 8), Tensor("b", "[1]", 8, 12), 12), "");  // late start
  EXPECT_NE(with(Tensor("a", "[1]", 0, 4), Tensor("b", "[2]", 4, 12), 8), "");   // past the end
}

TEST(SafetensorsTest, SizesMustBeThoseOfShapeAndType) {
  const auto one = [](const std::string& tensor, size_t bytes) {
    return Refusal(File("{" + tensor + "}", bytes));
  };
  EXPECT_NE(one(Tensor("a", "[2]", 0, 4), 4), "");
  EXPECT_NE(one(Tensor("a", "[1]", 0, 4, "F64"), 4), "");
  EXPECT_NE(one(Tensor("a", "[1]", 0, 4, "F99"), 4), "");
  EXPECT_NE(one(Tensor("a", "[1]", 4, 0), 4), "");
  EXPECT_NE(one(Tensor("a", "[-1]", 0, 4), 4), "");
  EXPECT_NE(one(Tensor("a", "[1.5]", 0, 4), 4), "");
  EXPECT_NE(one(Tensor("a", "\"1\"", 0, 4), 4), "");
  // Products that wrap around to 4 modulo 2^64.
  EXPECT_NE(one(Tensor("a", "[4611686018427387905]", 0, 4), 4), "");
  EXPECT_NE(one(Tensor("a", "[4294967296,4294967296,1]", 0, 0), 0), "");
  EXPECT_NE(one(Tensor("a", "[18446744073709551615]", 0, 4), 4), "");
  EXPECT_NE(one("\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4],\"x\":1}", 4), "");
}

// The message of each mistake.
TEST(SafetensorsTest, MistakesAreNamed) {
  const auto says = [](const std::string& header, size_t bytes, const std::string& what) {
    const std::string refusal = Refusal(File(header, bytes));
    EXPECT_TRUE(absl::StrContains(refusal, what)) << refusal << "\nnot: " << what;
  };
  const auto one = [](const std::string& tensor) { return "{" + tensor + "}"; };
  const auto two = [](const std::string& a, const std::string& b) {
    return "{" + a + "," + b + "}";
  };
  says(one(Tensor("a", "[1]", 0, 4, "F4")), 4, "tensor \"a\": unknown dtype \"F4\"");
  says(one(Tensor("a", "[1]", 8, 4)), 8, "tensor \"a\": offsets 8-4 run backwards");
  says(one(Tensor("a", "[2]", 0, 8)), 4, "tensor \"a\": offsets 0-8 exceed the file, which has 4");
  says(one(Tensor("a", "[3]", 0, 8)), 8,
       "offsets 0-8 do not span the 12 bytes of its shape and dtype");
  says(one(Tensor("a", "[4294967296,4294967296,1]", 0, 4)), 4, "more elements than can be counted");
  says(two(Tensor("a", "[2]", 0, 8), Tensor("b", "[1]", 4, 8)), 8,
       "tensor \"b\" starts at 4, within tensor \"a\", which ends at 8");
  says(two(Tensor("a", "[1]", 0, 4), Tensor("b", "[1]", 8, 12)), 12,
       "bytes 4-8 before tensor \"b\" belong to no tensor");
  says(one(Tensor("a", "[1]", 0, 4)), 8, "the tensors end at byte 4 of 8 bytes of data");
  says(one(Tensor("a", "[-1]", 0, 4)), 4, "a number of its shape is negative");
  says(one(Tensor("a", "[1e0]", 0, 4)), 4, "a number of its shape is negative, broken");
  says(one(Tensor("a", "[[1]]", 0, 4)), 4, "tensor \"a\" has a list in its shape");
  says(one("\"a\":{\"dtype\":7,\"shape\":[1],\"data_offsets\":[0,4]}"), 4,
       "tensor \"a\" has a number as its dtype");
  says(one("\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0]}"), 4, "not two numbers");
  says(one("\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4],\"more\":1}"), 4,
       "not \"more\"");
  says(one("\"a\":{\"dtype\":\"F32\",\"shape\":[1]}"), 4, "expected dtype, shape and data_offsets");
  says(one("\"a\":[]"), 0, "tensor \"a\" is a list, not an object");
  says("{\"__metadata__\":{\"k\":1}}", 0, "__metadata__ has a number instead of a string");
  says("{\"__metadata__\":{},\"__metadata__\":{}}", 0, "occurs twice");
  says("{\"a\":", 0, "the header is not a JSON object: there is an error at byte");
  std::string extents = "[1";
  for (int i = 0; i < 100; ++i) extents += ",1";
  says(one(Tensor("a", extents + "]", 0, 4)), 4, "shape has more than 64 numbers");
  // Names may be arbitrary, so messages show them printable and shortened.
  says(one(Tensor(std::string(5000, 'n') + "\\u0007", "[1]", 0, 0)), 4,
       std::string(200, 'n') + "...\"");
  says(one(Tensor("\\u0007\\n", "[1]", 4, 0)), 4, "tensor \"\\x07\\n\"");
}

TEST(SafetensorsTest, AllTypesOfTheFormatAreRead) {
  for (const auto& [name, bytes] : {std::pair{"BOOL", 1},
                                    {"U8", 1},
                                    {"I8", 1},
                                    {"F8_E4M3", 1},
                                    {"F8_E5M2", 1},
                                    {"U16", 2},
                                    {"I16", 2},
                                    {"F16", 2},
                                    {"BF16", 2},
                                    {"U32", 4},
                                    {"I32", 4},
                                    {"F32", 4},
                                    {"U64", 8},
                                    {"I64", 8},
                                    {"F64", 8},
                                    {"C64", 8}}) {
    const size_t size = 3 * static_cast<size_t>(bytes);
    const std::string file = File("{" + Tensor("a", "[3]", 0, 3 * bytes, name) + "}", size);
    const auto parsed = ParseSafetensors(file);
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    EXPECT_EQ(NameOf(parsed->tensors.at("a").dtype), std::string(name));
    EXPECT_EQ(SizeOf(parsed->tensors.at("a").dtype), bytes);
  }
}

// Time and memory grow linearly with the header.
TEST(SafetensorsTest, ManyTensorsAreReadQuickly) {
  std::string header = "{";
  for (int i = 0; i < 200'000; ++i) {
    header += (i > 0 ? "," : "") + Tensor(absl::StrCat("t", i), "[0]", 0, 0);
  }
  const std::string file = File(header + "}", 0);
  const auto parsed = ParseSafetensors(file);
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(parsed->tensors.size(), 200'000u);
}

TEST(SafetensorsTest, AnotherNumberOfValuesThanExpectedIsAnError) {
  const std::string file = File("{" + Tensor("a", "[2]", 0, 8) + "}", 8);
  const auto parsed = ParseSafetensors(file);
  ASSERT_TRUE(parsed.ok());
  EXPECT_TRUE(FloatsOf(*parsed, "a", 2).ok());
  EXPECT_TRUE(absl::IsDataLoss(FloatsOf(*parsed, "a", 3).status()));
  EXPECT_TRUE(absl::IsNotFound(FloatsOf(*parsed, "b", 2).status()));
}

}  // namespace
}  // namespace traind
