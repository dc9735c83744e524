#include "client/formats.h"

#include <gtest/gtest.h>

namespace traind {
namespace {

constexpr char kJobs[] = R"({"jobs": [
  {"id": "a-1", "state": "RUNNING", "scores": null, "folds": [{"index": 0}], "rows": 3},
  {"id": "b-2", "state": "SUCCEEDED, at last", "scores": {"oof": 0.5, "ok": true}, "rows": null}
]})";

std::string Formatted(const char* json, OutputFormat format) {
  const auto text = FormatDocument(json, format);
  return text.ok() ? *text : "error: " + std::string(text.status().message());
}

TEST(FormatsTest, YamlHasTheKeysInTheirOrderAndQuotesWhatWouldBeSomethingElse) {
  EXPECT_EQ(Formatted(R"({"b": "x", "a": ["yes", "1", "", "a: b"], "c": {"d": null, "e": []},
                          "f": [{"g": 1, "h": {"i": true}}, [2, 3]]})",
                      OutputFormat::kYaml),
            "b: x\n"
            "a:\n"
            "  - \"yes\"\n"
            "  - \"1\"\n"
            "  - \"\"\n"
            "  - \"a: b\"\n"
            "c:\n"
            "  d: null\n"
            "  e: []\n"
            "f:\n"
            "  - g: 1\n"
            "    h:\n"
            "      i: true\n"
            "  - - 2\n"
            "    - 3\n");
}

TEST(FormatsTest, CsvHasAColumnForEachValueThatIsNoList) {
  EXPECT_EQ(Formatted(kJobs, OutputFormat::kCsv),
            "id,state,rows,scores.oof,scores.ok\n"
            "a-1,RUNNING,3,,\n"
            "b-2,\"SUCCEEDED, at last\",,0.5,true\n");
}

TEST(FormatsTest, JsonLinesAndNamesHaveALineForEachElement) {
  EXPECT_EQ(Formatted(R"([{"id": "a", "n": [1, 2]}, {"id": "b"}])", OutputFormat::kJsonLines),
            "{\"id\":\"a\",\"n\":[1,2]}\n{\"id\":\"b\"}\n");
  EXPECT_EQ(Formatted(kJobs, OutputFormat::kName), "a-1\nb-2\n");
  EXPECT_EQ(Formatted(R"([{"quota": {"subject": {"owner": "", "label": "team=a"}}}])",
                      OutputFormat::kName),
            "team=a\n");
}

TEST(FormatsTest, WhatIsNoListHasNoLines) {
  EXPECT_EQ(Formatted(R"({"a": 1})", OutputFormat::kCsv), "error: this is no list");
  EXPECT_EQ(Formatted(R"({"id": "a-1", "folds": []})", OutputFormat::kName), "a-1\n");
  EXPECT_EQ(Formatted(R"({"a": [], "b": []})", OutputFormat::kName), "error: this is no list");
  EXPECT_EQ(Formatted(R"({"created": true, "trial": {"index": 3, "name": "mlp-2"}})",
                      OutputFormat::kName),
            "mlp-2\n");
  EXPECT_EQ(Formatted(R"({"a": {"name": "x"}, "b": {"name": "y"}})", OutputFormat::kName),
            "error: this is no list");
}

}  // namespace
}  // namespace traind
