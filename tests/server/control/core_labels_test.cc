// Jobs that ask for labels and GPUs.
#include <gmock/gmock.h>

#include <set>
#include <string>
#include <utility>

#include "tests/server/control/control_core_harness.h"

namespace traind {
namespace {

using testing::IsEmpty;
using testing::SizeIs;

void Add(CoreHarness& h, const std::string& name, std::set<std::string> labels,
         const std::string& gpu = "") {
  WorkerAttached hello = h.Hello(name, 1);
  hello.labels = std::move(labels);
  if (!gpu.empty()) hello.slots = {{0, "cuda", gpu, "", int64_t{79} << 30}};
  h.Step({std::move(hello)});
}

// Reads its data and fits the floor, wherever that is.
std::string Prepared(CoreHarness& h, Job job, std::string* reader = nullptr) {
  const std::string id = h.SubmitJob(std::move(job));
  const std::string worker = h.Stored(id).attempts.at(0).worker;
  const int64_t attempt = h.AttemptOf(id, 0);
  h.starts.clear();
  h.Say(attempt, h.Table(), worker);
  h.Say(attempt, h.Ended(), worker);
  if (reader != nullptr) *reader = worker;
  return id;
}

Job Asks(Constraints asked, const std::string& name = "a") {
  Job job = CoreHarness::MakeJob(name, 1);
  job.spec.constraints = std::move(asked);
  return job;
}

TEST(CoreLabelsTest, ReadingAndTrainingAreWhereTheLabelsAre) {
  CoreHarness h;
  Add(h, "a", {"rack=a"});
  Add(h, "b", {"rack=b", "zone=x"});
  Add(h, "c", {"rack=b"});
  std::string reader;
  const std::string id = Prepared(h, Asks({{"rack=b", "zone=x"}}), &reader);
  EXPECT_EQ(reader, "b");
  ASSERT_THAT(h.starts, SizeIs(1));
  EXPECT_EQ(h.starts[0].worker, "b");
}

TEST(CoreLabelsTest, WhereNobodyHasThemTheJobIsToldAndTheFloorAnswers) {
  CoreHarness h;
  Add(h, "a", {"rack=a"});
  const std::string id = Prepared(h, Asks({{"rack=b"}}));
  EXPECT_THAT(h.starts, IsEmpty());
  h.Wait(absl::Seconds(1));
  const auto job = h.core().FindJob(id);
  EXPECT_EQ(job->pending_reason, PendingReason::kNoMatchingWorker);
  EXPECT_EQ(job->waits_for, "no Worker has label rack=b");
  Add(h, "b", {"rack=b"});
  h.Wait(absl::Seconds(1));
  EXPECT_EQ(h.Stored(id).attempts.back().worker, "b");
}

TEST(CoreLabelsTest, AWorkerMayComeBackWithOtherLabels) {
  CoreHarness h;
  Add(h, "a", {"rack=a"});
  h.Step({WorkerDetached{"a", h.session}});
  Add(h, "a", {"rack=b"});
  Add(h, "b", {"rack=a"});
  const std::string id = Prepared(h, Asks({{"rack=a"}}));
  EXPECT_EQ(h.Stored(id).attempts.at(0).worker, "b");
  EXPECT_EQ(h.Stored(id).attempts.back().worker, "b");
}

TEST(CoreLabelsTest, AGpuIsAskedForByItsName) {
  CoreHarness h;
  Add(h, "a", {}, "NVIDIA L4");
  const std::string id = Prepared(h, Asks({{}, "h100", int64_t{80} << 30}));
  EXPECT_THAT(h.starts, IsEmpty());
  h.Wait(absl::Seconds(1));
  EXPECT_EQ(h.core().FindJob(id)->waits_for,
            "no GPU is named h100 with 81920 MiB; there is nvidia l4 of 80896 MiB");
  Add(h, "b", {}, "NVIDIA H100 80GB HBM3");
  h.Wait(absl::Seconds(1));
  EXPECT_EQ(h.Stored(id).attempts.back().worker, "b");
}

TEST(CoreLabelsTest, WhatIsAskedHoldsOverARestart) {
  CoreHarness h;
  Add(h, "a", {"rack=a"});
  const std::string id = Prepared(h, Asks({{"rack=b"}}));
  h.Crash();
  Add(h, "a", {"rack=a"});
  Add(h, "b", {"rack=b"});
  h.Wait(absl::Seconds(10));
  EXPECT_EQ(h.Stored(id).attempts.back().worker, "b");
}

}  // namespace
}  // namespace traind
