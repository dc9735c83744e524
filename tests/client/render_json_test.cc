#include "common/wire/render_json.h"

#include <gtest/gtest.h>

#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>

#include "proto/training_service.pb.h"
#include "tests/client/sample_jobs.h"

namespace traind {
namespace {

std::string Golden(const std::string& name) {
  std::ifstream in("tests/client/golden/" + name);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

// Scripts read this format: fields may be added, but not changed.
TEST(RenderJsonTest, AJobIsAsInTheGoldenFile) {
  EXPECT_EQ(ToJson(RunningJob()) + "\n", Golden("running_job.json"));
  EXPECT_EQ(ToJson(EndedJob()) + "\n", Golden("ended_job.json"));
}

TEST(RenderJsonTest, TheKeysThatScriptsReadAreThere) {
  const auto job = nlohmann::json::parse(ToJson(EndedJob()));
  EXPECT_EQ(job["state"], "SUCCEEDED");
  EXPECT_EQ(job["quality"], "DEGRADED");
  EXPECT_EQ(job["accepted_at"], "2026-12-01T18:00:00.120Z");
  EXPECT_EQ(job["deadline"], "2026-12-01T18:01:00.120Z");
  EXPECT_EQ(job["predictions"]["folds"], nlohmann::json::parse("[0, 1, 2, 3]"));
  EXPECT_EQ(job["folds"][4]["state"], "DROPPED");
  EXPECT_EQ(job["folds"][0]["progress"]["unit"], "EPOCH");
  EXPECT_TRUE(job["folds"][4]["score"].is_null());
  EXPECT_EQ(job["predictions"]["bytes"], 12345678901);
  EXPECT_EQ(job["decisions"][0]["rule"], "B2");
  EXPECT_TRUE(job["remaining_s"].is_null());
}

TEST(RenderJsonTest, WhatIsUnsetIsNull) {
  const auto job = nlohmann::json::parse(ToJson(v1::Job()));
  for (const char* key : {"state", "quality", "end_reason", "accepted_at", "deadline",
                          "finished_at", "predictions", "scores", "plan", "pending_reason"}) {
    EXPECT_TRUE(job[key].is_null()) << key;
  }
  EXPECT_EQ(job["folds"], nlohmann::json::array());
  EXPECT_EQ(job["labels"], nlohmann::json::object());
  EXPECT_EQ(job["version"], 0);
  EXPECT_EQ(job["id"], "");
}

TEST(RenderJsonTest, NumbersThatAreNotFiniteAreWords) {
  v1::MetricPoint point;
  point.set_value(std::numeric_limits<double>::quiet_NaN());
  EXPECT_EQ(nlohmann::json::parse(ToJson(point))["value"], "NaN");
  point.set_value(-std::numeric_limits<double>::infinity());
  EXPECT_EQ(nlohmann::json::parse(ToJsonLine(point))["value"], "-Infinity");
}

TEST(RenderJsonTest, NumbersComeBackExactly) {
  for (double value : {0.1, 1.0, 1e-300, 1.7976931348623157e308, 123456789.125, -0.0, 1e22}) {
    EXPECT_EQ(nlohmann::json::parse(JsonNumber(value)).get<double>(), value) << value;
  }
  EXPECT_EQ(JsonNumber(20), "20");
}

TEST(RenderJsonTest, NoControlCharacterGetsThrough) {
  EXPECT_EQ(JsonString("a\"b\\c\n\t\x1b[31m\x7f"), R"("a\"b\\c\n\t\u001b[31m\u007f")");
  EXPECT_EQ(JsonString("\xc2\x9b"), R"("\u009b")");
  EXPECT_EQ(JsonString("\xc3\xa9\xe2\x82\xac"), "\"\xc3\xa9\xe2\x82\xac\"");
}

TEST(RenderJsonTest, ALineHasNoLineBreak) {
  const std::string line = ToJsonLine(RunningJob());
  EXPECT_EQ(line.find('\n'), std::string::npos);
  EXPECT_EQ(nlohmann::json::parse(line), nlohmann::json::parse(ToJson(RunningJob())));
}

}  // namespace
}  // namespace traind
