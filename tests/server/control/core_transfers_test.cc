// Folds whose files travel to Workers with folders of their own: what the Plan expects of them.
#include <gmock/gmock.h>

#include <string>

#include "tests/server/control/control_core_harness.h"

namespace traind {
namespace {

// A Job on a Worker with a folder of its own.
struct OwnFolderJob {
  // Submits a Job of 5 folds with 20 epochs, which PREPARE reads.
  void Begin(facts::Transfers prepared, int64_t test_rows = 10) {
    WorkerAttached hello = h.Hello("w", 1);
    hello.own_folder = true;
    h.Step({hello});
    Job job = CoreHarness::MakeJob("a", 5);
    job.spec_json = R"({"data": {"train": "/data/train.csv"}})";
    id = h.SubmitJob(job);
    const int64_t prepare = h.AttemptOf(id, 0);
    h.Say(prepare, prepared);
    facts::TableReady table = CoreHarness::Table();
    table.test_rows = test_rows;
    h.Say(prepare, table);
    h.Say(prepare, facts::FloorReady{"prior", 0.5});
    h.Publish(id, Quality::kFloor);
    h.Say(prepare, CoreHarness::Ended());
  }
  // The first fold trains for two epochs of 0.21 s.
  void Train() {
    const int64_t attempt = h.AttemptOf(id, 1);
    h.Say(attempt, CoreHarness::Started());
    h.Say(attempt, CoreHarness::Probe(0.002));
    for (int epoch = 1; epoch <= 2; ++epoch) {
      h.now += absl::Milliseconds(210);
      facts::Epoch done;
      done.epoch = epoch;
      done.step = 100 * epoch;
      done.epoch_s = 0.2;
      done.evaluate_s = 0.01;
      h.Say(attempt, done);
    }
  }

  CoreHarness h;
  std::string id;
};

TEST(TransfersTest, OnlyTheFirstFoldOnAWorkerIsExpectedToFetch) {
  for (const bool told : {true, false}) {
    OwnFolderJob run;
    run.Begin({});
    run.h.now += absl::Seconds(10);
    if (told) run.h.Say(run.h.AttemptOf(run.id, 1), facts::Transfers{100 << 20, 10, 0, 0});
    run.Train();
    // 10 s and 5 x 4.2 s fit in 48 s, 5 x 14.2 s do not.
    EXPECT_EQ(run.h.Stored(run.id).plans.back().folds == 5, told);
    EXPECT_EQ(run.h.Rules(run.id).empty(), told);
  }
}

TEST(TransfersTest, TheReserveHasTimeForResultsToTravel) {
  for (const bool slow : {true, false}) {
    OwnFolderJob run;
    // The predictions of a fold are 4 MB.
    run.Begin({0, 0, 1'000'000, slow ? 2 : 0.001}, 1'000'000);
    run.Train();
    const absl::Duration reserve = run.h.Stored(run.id).plans.back().reserve;
    EXPECT_EQ(reserve > absl::Seconds(8), slow) << reserve;
  }
}

TEST(TransfersTest, ACutNamesTheTimeThatFilesTravel) {
  OwnFolderJob run;
  run.Begin({0, 0, 1'000'000, 2}, 1'000'000);
  run.Train();
  ASSERT_FALSE(run.h.Stored(run.id).decisions.empty());
  EXPECT_THAT(run.h.Stored(run.id).decisions[0].cause,
              testing::HasSubstr("prediction, 8 s a fold for its files to travel and the"));
}

TEST(TransfersTest, WhatTravelledIsStoredWithTheAttempt) {
  OwnFolderJob run;
  run.Begin({100, 0.5, 200, 0.25});
  const facts::Transfers stored = run.h.Stored(run.id).attempts.at(0).transfers;
  EXPECT_EQ(stored.fetched_bytes, 100);
  EXPECT_EQ(stored.fetch_s, 0.5);
  EXPECT_EQ(stored.sent_bytes, 200);
  EXPECT_EQ(stored.send_s, 0.25);
}

}  // namespace
}  // namespace traind
