#include "common/spec/yaml_bind.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include "tests/common/spec/sample.pb.h"

namespace traind {
namespace {

struct Bound {
  test::Sample sample;
  std::vector<SpecProblem> problems;
  std::map<std::string, std::string> places;
  std::string Errors() const {
    return absl::StrJoin(problems, "\n", [](std::string* out, const SpecProblem& problem) {
      absl::StrAppend(out, problem.ToString());
    });
  }
};

Bound Bind(absl::string_view text, std::vector<SpecOverride> overrides = {}) {
  Bound bound;
  SpecReadOptions options;
  options.file = "f";
  options.base_dir = "/base";
  options.now = absl::FromUnixSeconds(1000000000);
  options.overrides = std::move(overrides);
  BindYaml(text, options, bound.sample, bound.problems, bound.places);
  return bound;
}

void ExpectSample(absl::string_view yaml, const std::string& text) {
  const Bound bound = Bind(yaml);
  EXPECT_EQ(bound.Errors(), "") << yaml;
  test::Sample want;
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &want)) << text;
  EXPECT_EQ(bound.sample.DebugString(), want.DebugString()) << yaml;
}

TEST(YamlBindTest, EveryKindOfFieldIsRead) {
  ExpectSample("on: true", "on: true");
  ExpectSample("on: false", "");
  ExpectSample("colour: dark_blue", "colour: COLOUR_DARK_BLUE");
  ExpectSample("colour: RED", "colour: COLOUR_RED");
  ExpectSample("colours: [red, dark_blue]", "colours: [COLOUR_RED, COLOUR_DARK_BLUE]");
  ExpectSample("i32: -5", "i32: -5");
  ExpectSample("i32: +7", "i32: 7");
  ExpectSample("i64: -9223372036854775808", "i64: -9223372036854775808");
  ExpectSample("u32: 4294967295", "u32: 4294967295");
  ExpectSample("u64: 18446744073709551615", "u64: 18446744073709551615");
  ExpectSample("real: 1e-3", "real: 0.001");
  ExpectSample("real: 3", "real: 3");
  ExpectSample("single: -.5", "single: -0.5");
  ExpectSample("text: no", "text: 'no'");
  ExpectSample("text: '5'", "text: '5'");
  ExpectSample("text: 2024-01-01", "text: '2024-01-01'");
  ExpectSample("wait: 1.5s", "wait {seconds: 1 nanos: 500000000}");
  ExpectSample("waits: [1s, 00:01:00]", "waits {seconds: 1} waits {seconds: 60}");
  ExpectSample("when: 2001-09-09T01:46:40.25Z", "when {seconds: 1000000000 nanos: 250000000}");
  ExpectSample("when: +2h", "when {seconds: 1000007200}");
  ExpectSample("numbers: [1, 2]", "numbers: [1, 2]");
  ExpectSample("texts: [a, '']", "texts: ['a', '']");
  ExpectSample("samples: [{i32: 1}, {i32: 2}]", "samples {i32: 1} samples {i32: 2}");
  ExpectSample("counts: {a: 1, b.c: 2}", "counts {key: 'a' value: 1} counts {key: 'b.c' value: 2}");
  ExpectSample("square: {}", "square {}");
  ExpectSample("maybe: 0", "maybe: 0");
  ExpectSample("size: auto", "");
}

TEST(YamlBindTest, JsonIsRead) {
  ExpectSample(R"({"text": "a\u00e9\n", "numbers": [1, 2], "on": true, "square": {"i32": 3}})",
               R"(text: "a\303\251\n" numbers: [1, 2] on: true square {i32: 3})");
}

TEST(YamlBindTest, EmptyAndNullValuesAreUnset) {
  ExpectSample("", "");
  ExpectSample("# nothing\n", "");
  ExpectSample("text:\ni32: null\nreal: ~\nsamples:\nsquare:\ncounts:\n", "");
}

TEST(YamlBindTest, PathsBecomeAbsolute) {
  EXPECT_EQ(Bind("file: a.csv").sample.file(), "/base/a.csv");
  EXPECT_EQ(Bind("file: ../x/./a.csv").sample.file(), "/x/a.csv");
  EXPECT_EQ(Bind("file: /abs/a.csv").sample.file(), "/abs/a.csv");
  EXPECT_EQ(Bind("file: sha256:00ff").sample.file(), "sha256:00ff");
}

struct ErrorCase {
  const char* yaml;
  const char* error;
};

class YamlErrorTest : public testing::TestWithParam<ErrorCase> {};

TEST_P(YamlErrorTest, IsReportedAtItsPlace) {
  EXPECT_EQ(Bind(GetParam().yaml).Errors(), GetParam().error) << GetParam().yaml;
}

INSTANTIATE_TEST_SUITE_P(
    Keys, YamlErrorTest,
    testing::Values(
        ErrorCase{"txet: a", "f:1:1: error: unknown key 'txet' in the spec; did you mean 'text'?"},
        ErrorCase{"square:\n  i23: 1",
                  "f:2:3: error: unknown key 'i23' in square; did you mean 'i32'?"},
        ErrorCase{"\"a\\nb\": 1",
                  "f:1:1: error: unknown key 'a\\nb' in the spec; the keys here are on, colour, "
                  "i32, i64, u32, u64, real, single, text, wait, when, numbers, texts, samples, "
                  "counts, square, circle, file, waits, size, colours, maybe"},
        ErrorCase{"i32: 1\ntext: a\ni32: 2", "f:3:1: error: duplicate key 'i32' in the spec"},
        ErrorCase{"square: {i32: 1, i32: 2}", "f:1:18: error: duplicate key 'i32' in square"},
        ErrorCase{"counts: {a: 1, a: 2}", "f:1:16: error: duplicate key 'a' in counts"},
        ErrorCase{"? [a]\n: 1", "f:1:3: error: a key must be a word; is a bracket left open?"},
        ErrorCase{"square: {i32: 1}\ncircle: {i32: 1}",
                  "f:2:1: error: the spec has both 'square' and 'circle'; choose one shape"},
        ErrorCase{"hello", "f:1:1: error: the spec must be made of 'key: value' lines"},
        ErrorCase{"[1]", "f:1:1: error: the spec must be made of 'key: value' lines"}));

INSTANTIATE_TEST_SUITE_P(
    Types, YamlErrorTest,
    testing::Values(
        ErrorCase{"i32: abc", "f:1:6: error: i32 'abc' is not a whole number"},
        ErrorCase{"i32: 1.5", "f:1:6: error: i32 '1.5' is not a whole number"},
        ErrorCase{"i32: 1e3", "f:1:6: error: i32 '1e3' is not a whole number"},
        ErrorCase{"i32: 0x10", "f:1:6: error: i32 '0x10' is not a whole number"},
        ErrorCase{"i32: 010", "f:1:6: error: i32 '010' has a leading zero; write a decimal number"},
        ErrorCase{"i32: '5'", "f:1:6: error: i32 \"5\" is text; write the number without quotes"},
        ErrorCase{"i32: [1]", "f:1:6: error: i32 is a list; expected a whole number"},
        ErrorCase{"i32: {a: 1}", "f:1:6: error: i32 is a section; expected a whole number"},
        ErrorCase{"i32: 99999999999",
                  "f:1:6: error: i32 '99999999999' is out of range, -2147483648 to 2147483647"},
        ErrorCase{"u64: -1", "f:1:6: error: u64 '-1' is negative"},
        ErrorCase{"i32: auto", "f:1:6: error: i32 'auto' cannot stand here"},
        ErrorCase{"size: wide", "f:1:7: error: size 'wide' is not a whole number, or auto"},
        ErrorCase{"size: 0", "f:1:7: error: size '0' is below the minimum, 1"},
        ErrorCase{"i32: -6", "f:1:6: error: i32 '-6' is below the minimum, -5"},
        ErrorCase{"i32: 11", "f:1:6: error: i32 '11' is above the maximum, 10"},
        ErrorCase{"real: .nan", "f:1:7: error: real '.nan' is not a number"},
        ErrorCase{"real: .inf", "f:1:7: error: real '.inf' is not a number"},
        ErrorCase{"real: inf", "f:1:7: error: real 'inf' is not a number"},
        ErrorCase{"real: nan", "f:1:7: error: real 'nan' is not a number"},
        ErrorCase{"real: 1e9999", "f:1:7: error: real '1e9999' is too large for a number"},
        ErrorCase{"on: yes", "f:1:5: error: on 'yes' is neither true nor false"},
        ErrorCase{"on: no", "f:1:5: error: on 'no' is neither true nor false"},
        ErrorCase{"on: on", "f:1:5: error: on 'on' is neither true nor false"},
        ErrorCase{"on: y", "f:1:5: error: on 'y' is neither true nor false"},
        ErrorCase{"on: True", "f:1:5: error: on 'True' is neither true nor false"},
        ErrorCase{"on: 'true'", "f:1:5: error: on 'true' is neither true nor false"},
        ErrorCase{"colour: blue", "f:1:9: error: colour 'blue' must be one of: RED, DARK_BLUE"},
        ErrorCase{"colour: rad",
                  "f:1:9: error: colour 'rad' must be one of: RED, DARK_BLUE; did you mean 'RED'?"},
        ErrorCase{"colour: unspecified",
                  "f:1:9: error: colour 'unspecified' must be one of: RED, DARK_BLUE"},
        ErrorCase{"text: [a]", "f:1:7: error: text is a list; expected a text"},
        ErrorCase{"numbers: 5", "f:1:10: error: numbers is '5'; expected a list, as in [5]"},
        ErrorCase{"numbers: []",
                  "f:1:10: error: numbers is an empty list; leave the key out for its default"},
        ErrorCase{"numbers: [1, x]", "f:1:14: error: numbers[1] 'x' is not a whole number"},
        ErrorCase{"numbers: [1, [2]]",
                  "f:1:14: error: numbers[1] is a list; expected a whole number"},
        ErrorCase{"numbers: [1, null]",
                  "f:1:14: error: numbers[1] is empty; expected a whole number"},
        ErrorCase{"counts: {a: x}", "f:1:13: error: counts.a 'x' is not a whole number"},
        ErrorCase{"counts: [1]",
                  "f:1:9: error: counts is a list; expected a section of names and texts"},
        ErrorCase{"i32: !!binary aGk=", "f:1:6: error: i32 'aGk=' is not a whole number"},
        ErrorCase{"i32: !widget 5", "f:1:6: error: the tag !widget means nothing here"}));

INSTANTIATE_TEST_SUITE_P(
    Times, YamlErrorTest,
    testing::Values(
        ErrorCase{"wait: 90", "f:1:7: error: wait '90' has no unit; write 90s or 90m"},
        ErrorCase{"wait: 61s", "f:1:7: error: wait '61s' is above the maximum, 60s"},
        ErrorCase{"wait: 500ms", "f:1:7: error: wait '500ms' is below the minimum, 1s"},
        ErrorCase{"when: tomorrow",
                  "f:1:7: error: when 'tomorrow' is not an RFC 3339 time; write it like "
                  "2026-12-01T18:00:00Z or like +2h"},
        ErrorCase{"when: +90", "f:1:7: error: when '90' has no unit; write 90s or 90m"}));

INSTANTIATE_TEST_SUITE_P(
    Texts, YamlErrorTest,
    testing::Values(
        ErrorCase{"i32: 1\n---\ni32: 2", "f:1:1: error: more than one document"},
        ErrorCase{"text: \"a", "f:1:9: error: not YAML: illegal EOF in scalar"},
        ErrorCase{"text: a\x01", "f:1:8: error: control character 0x01"},
        ErrorCase{"text: a\x04z", "f:1:8: error: control character 0x04"},
        ErrorCase{"text: \xff", "f:1:7: error: not UTF-8 text: byte 0xff"},
        ErrorCase{"text: *x", "f:1:7: error: not YAML: the referenced anchor is not defined"},
        ErrorCase{"square: &a {square: *a}", "f:1:21: error: this alias contains itself"},
        // The column counts characters, not bytes.
        ErrorCase{"{text: \"\xc3\xa9\xc3\xa9\", i32: x}",
                  "f:1:19: error: i32 'x' is not a whole number"}));

TEST(YamlBindTest, AllMistakesAreReportedInTheOrderOfTheFile) {
  EXPECT_EQ(Bind("square: {i32: x}\nreal: y\nwait: 5\n").Errors(),
            "f:1:15: error: square.i32 'x' is not a whole number\n"
            "f:2:7: error: real 'y' is not a number\n"
            "f:3:7: error: wait '5' has no unit; write 5s or 5m");
}

TEST(YamlBindTest, AnchorsAliasesAndMergesWork) {
  ExpectSample("square: &a {i32: 1, text: x}\nsamples: [*a, *a]",
               "square {i32: 1 text: 'x'} samples {i32: 1 text: 'x'} samples {i32: 1 text: 'x'}");
  ExpectSample("square: &a {i32: 1, text: x}\nsamples: [{<<: *a, i32: 2}]",
               "square {i32: 1 text: 'x'} samples {i32: 2 text: 'x'}");
  ExpectSample("samples: [&a {i32: 1}, &b {i32: 2, text: b}, {<<: [*a, *b]}]",
               "samples {i32: 1} samples {i32: 2 text: 'b'} samples {i32: 1 text: 'b'}");
  EXPECT_EQ(Bind("square: {<<: 5}").Errors(),
            "f:1:14: error: '<<' merges sections, or a list of them");
}

TEST(YamlBindTest, AnAliasBombIsRefused) {
  std::string yaml = "samples:\n- &a0 {i32: 1}\n";
  for (int i = 1; i < 12; ++i) {
    absl::StrAppend(&yaml, "- &a", i, " {samples: [");
    for (int k = 0; k < 10; ++k) absl::StrAppend(&yaml, k ? ", " : "", "*a", i - 1);
    absl::StrAppend(&yaml, "]}\n");
  }
  const Bound bound = Bind(yaml);
  ASSERT_EQ(bound.problems.size(), 1u) << bound.Errors();
  EXPECT_EQ(bound.problems[0].message, "more than 100000 values, an aliased one counted each time");
}

TEST(YamlBindTest, AMergeBombIsRefused) {
  std::string yaml = "samples:\n- &a0 {i32: 1}\n";
  for (int i = 1; i < 2000; ++i) absl::StrAppend(&yaml, "- &a", i, " {<<: *a", i - 1, "}\n");
  const Bound bound = Bind(yaml);
  ASSERT_FALSE(bound.problems.empty());
  EXPECT_EQ(bound.problems[0].message, "'<<' nested deeper than 32");
}

TEST(YamlBindTest, DepthAndSizeAreLimited) {
  const std::string deep(YamlTree::kMostDepth + 1, '[');
  EXPECT_EQ(Bind(deep + std::string(deep.size(), ']')).Errors(),
            "f:1:33: error: nested deeper than 32");
  EXPECT_EQ(Bind(std::string(200000, '[')).Errors(),
            "f:1:1: error: a key must be a word; is a bracket left open?");
  EXPECT_EQ(Bind(std::string(200000, '-')).problems.size(), 1u);
  const std::string large = "text: " + std::string(YamlTree::kMostBytes, 'a');
  EXPECT_EQ(Bind(large).Errors(), "f:1:1: error: larger than 1 MiB (1048582 bytes)");
}

// Each of these once took minutes or seconds: the cost must only grow with the size.
TEST(YamlBindTest, LargeTextsAreReadInTime) {
  std::string items = "numbers: [1";
  while (items.size() < YamlTree::kMostBytes - 8) items += ",1";
  EXPECT_EQ(Bind(items + "]").problems.size(), 1u);  // too many of them
  std::string keys;
  for (int i = 0; i < 80000; ++i) absl::StrAppend(&keys, "k", i, ": 1\n");
  EXPECT_EQ(Bind(keys).problems.size(), 100u);
}

TEST(YamlBindTest, AtMostAHundredMistakesAreListed) {
  std::string yaml = "numbers: [x";
  for (int i = 0; i < 500; ++i) yaml += ", x";
  EXPECT_EQ(Bind(yaml + "]").problems.size(), 100u);
}

TEST(YamlBindTest, OverridesReplaceAndAdd) {
  const std::string yaml = "i32: 1\nsquare: {i32: 2, text: a}\n";
  const Bound bound = Bind(yaml, {{"--a", "i32", "3"},
                                  {"--b", "square.i32", "4"},
                                  {"--c", "square.square.text", "x: y # z"},
                                  {"--d", "numbers", "[1, 2]"},
                                  {"--e", "counts.a.b", "5"},
                                  {"--f", "square.text", ""}});
  EXPECT_EQ(bound.Errors(), "");
  test::Sample want;
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(
      R"(i32: 3 square {i32: 4 square {text: "x: y # z"}} numbers: [1, 2]
         counts {key: "a.b" value: 5})",
      &want));
  EXPECT_EQ(bound.sample.DebugString(), want.DebugString());
}

TEST(YamlBindTest, OverridesObeyTheSameRules) {
  EXPECT_EQ(Bind("", {{"--set i32", "i32", "x"}}).Errors(),
            "--set i32: error: i32 'x' is not a whole number");
  EXPECT_EQ(Bind("", {{"--set i23", "i23", "5"}}).Errors(),
            "--set i23: error: unknown key 'i23' in the spec; did you mean 'i32'?");
  EXPECT_EQ(Bind("", {{"--set a..b", "a..b", "5"}}).Errors(),
            "--set a..b: error: 'a..b' is no path of a field; write it like train.epochs");
  EXPECT_EQ(Bind("", {{"--set numbers", "numbers", "[1"}}).Errors(),
            "--set numbers: error: a key must be a word; is a bracket left open?");
  EXPECT_EQ(Bind("square: {}", {{"--set circle", "circle", "{}"}}).Errors(),
            "--set circle: error: the spec has both 'square' and 'circle'; choose one shape");
  // A value that an override replaces is not checked.
  EXPECT_EQ(Bind("i32: x", {{"--set i32", "i32", "5"}}).Errors(), "");
}

TEST(YamlBindTest, AnOverrideDoesNotChangeWhatAnAliasShares) {
  const Bound bound = Bind("square: &a {i32: 1}\nsamples: [*a]", {{"--set", "square.i32", "2"}});
  EXPECT_EQ(bound.Errors(), "");
  EXPECT_EQ(bound.sample.square().i32(), 2);
  EXPECT_EQ(bound.sample.samples(0).i32(), 1);
}

TEST(YamlBindTest, PlacesOfWhatWasSetAreKnown) {
  const Bound bound = Bind("square:\n  numbers: [1,\n   2]\n");
  EXPECT_EQ(bound.places.at("square"), "f:1:1");
  EXPECT_EQ(bound.places.at("square.numbers"), "f:2:3");
  EXPECT_EQ(bound.places.at("square.numbers[1]"), "f:3:4");
}

}  // namespace
}  // namespace traind
