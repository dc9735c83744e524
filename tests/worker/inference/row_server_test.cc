// How long models stay loaded that answer rows, and what becomes of requests at the end.
#include "worker/inference/row_server.h"

#include <absl/strings/str_cat.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <functional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "common/base/clock.h"
#include "common/base/durable_file.h"
#include "common/base/job_layout.h"
#include "tests/common/data/table/table_fixture.h"
#include "worker/floor/floor_model_file.h"

namespace traind {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Between two of them the server waits for at most a second.
constexpr absl::Duration kBetweenProgress = absl::Seconds(40);

class RowServerTest : public ::testing::Test, private EventSink {
 protected:
  RowServerTest() {
    std::string pattern = ::testing::TempDir() + "/serve.XXXXXX";
    dir_ = mkdtemp(pattern.data());
    FloorModel model;
    model.job = "j";
    model.name = "mean";
    model.table_sha256 = "k";
    model.input =
        InputSchemaOf(testing_table::OpenTable(
                          testing_table::Read("a,y\n1,2\n2,3\n", "a\n1\n", TargetKind::kValue))
                          ->schema());
    model.prior = {2.5};
    const std::string floor = absl::StrCat(dir_, "/", FloorDir("j"));
    EXPECT_TRUE(MakeDirs(floor).ok());
    EXPECT_TRUE(WriteFloorModel(floor, model).ok());
  }
  ~RowServerTest() override { std::filesystem::remove_all(dir_); }

  void Serve() {
    rank_protocol::Serve task;
    task.attempt = 1;
    task.state_dir = dir_;
    task.spec_json = absl::StrCat(
        R"({"serve":{"from":"j","idle":"100s","models":{"metric":"rmse","quality":"FLOOR",)",
        R"("comparable":false,"models":[{"fold":-1,"path":")", FloorDir("j"),
        R"(","weight":1,"score":2,"complete":true}]}}})");
    const absl::Status status = RowServer(task, control_, *this, clock_).Run();
    EXPECT_TRUE(status.ok()) << status;
  }
  void Ask(uint64_t request) { control_.Push({1, request, {"a"}, {"7"}}); }

  SimulatedClock clock_{absl::UnixEpoch()};
  InferenceControl control_{1, -1, clock_};
  std::function<void()> on_progress_ = [] {};
  int progresses_ = 0;
  std::vector<std::string> values_, codes_;  // of the answers

 private:
  void Send(const rank_protocol::FromProcess& message) override {
    const auto* const answer = std::get_if<rank_protocol::Answered>(&message);
    if (answer == nullptr) return;
    codes_.push_back(answer->code);
    values_.insert(values_.end(), answer->values.begin(), answer->values.end());
  }
  void SendProgress(const rank_protocol::Progress&) override {
    ++progresses_;
    clock_.Advance(kBetweenProgress);
    on_progress_();
  }

  std::string dir_;
};

TEST_F(RowServerTest, ModelsStayForTheIdleTimeAfterTheLastRow) {
  on_progress_ = [this] {
    if (progresses_ == 2) Ask(1);
  };
  Serve();
  EXPECT_THAT(values_, ElementsAre("2.5"));
  EXPECT_THAT(codes_, ElementsAre(""));
  // Rows came after 80 s; without them it would have been three.
  EXPECT_EQ(progresses_, 5);
}

TEST_F(RowServerTest, WhatComesWithTheOrderToStopIsRefusedAndMayBeAskedElsewhere) {
  on_progress_ = [this] {
    control_.Apply(rank_protocol::Stop{1});
    Ask(1);
    Ask(2);
  };
  Serve();
  EXPECT_EQ(progresses_, 1);
  EXPECT_THAT(values_, IsEmpty());
  const auto unavailable = absl::StrCat(static_cast<int>(absl::StatusCode::kUnavailable));
  EXPECT_THAT(codes_, ElementsAre(unavailable, unavailable));
}

}  // namespace
}  // namespace traind
