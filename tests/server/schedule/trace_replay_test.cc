#include "tests/server/schedule/trace_replay.h"

#include <gtest/gtest.h>

namespace traind {
namespace {

constexpr Policy kAll[] = {Policy::kFifo, Policy::kEasy, Policy::kTraindNoPreempt, Policy::kTraind};

TEST(TraceReplayTest, EveryJobIsDoneOrLeavesAtItsDeadline) {
  TraceShape shape;
  shape.jobs = 400;
  shape.slots = 32;
  const std::vector<TraceJob> trace = DrawTrace(shape);
  for (const Policy policy : kAll) {
    const Figures figures = Replay(trace, {4, 8}, policy);
    EXPECT_EQ(figures.jobs, 400);
    EXPECT_EQ(figures.done, figures.jobs - (figures.with_deadline - figures.held)) << Name(policy);
    EXPECT_GE(figures.mean_slowdown, 1) << Name(policy);
    EXPECT_LE(figures.utilisation, 1) << Name(policy);
    EXPECT_GT(figures.utilisation, 0.3) << Name(policy);
  }
}

TEST(TraceReplayTest, AJobAloneIsNotSlowedDown) {
  TraceJob job;
  job.arrives = absl::UnixEpoch();
  job.runs = job.asks = absl::Minutes(10);
  job.slots = 12;  // of two Workers
  job.owner = "ann";
  for (const Policy policy : kAll) {
    const Figures figures = Replay({job}, {2, 8}, policy);
    EXPECT_EQ(figures.done, 1);
    EXPECT_EQ(figures.mean_slowdown, 1) << Name(policy);
  }
}

TEST(TraceReplayTest, OnlyPreemptionHelpsAHigherClassBehindLongJobs) {
  std::vector<TraceJob> trace(3);
  for (size_t i = 0; i < 3; ++i) {
    trace[i].arrives = absl::UnixEpoch() + absl::Minutes(i);
    trace[i].runs = trace[i].asks = i < 2 ? absl::Hours(10) : absl::Minutes(10);
    trace[i].owner = "ann";
  }
  trace[2].priority = 1;
  EXPECT_GT(Replay(trace, {1, 2}, Policy::kTraindNoPreempt).p95_slowdown_high, 50);
  const Figures figures = Replay(trace, {1, 2}, Policy::kTraind);
  EXPECT_EQ(figures.preemptions, 1);
  EXPECT_EQ(figures.done, 3);
  EXPECT_LT(figures.p95_slowdown_high, 1.1);
}

TEST(TraceReplayTest, TracesOfOthersAreRead) {
  const auto trace = ReadTrace(
      "job_id,user,gpu_num,submit_time,duration\n"
      "1,ann,2,2017-10-09 05:47:12,600\n"
      "2,bob,0,2017-10-09 05:00:00,600\n"
      "3,bob,1,2017-10-09 05:46:12,30.5\n",
      1);
  ASSERT_TRUE(trace.ok()) << trace.status();
  ASSERT_EQ(trace->size(), 2u) << "one has no GPU";
  EXPECT_EQ((*trace)[0].owner, "bob");
  EXPECT_EQ((*trace)[1].slots, 2);
  EXPECT_EQ((*trace)[1].arrives - (*trace)[0].arrives, absl::Minutes(1));
  EXPECT_GE((*trace)[1].asks, absl::Minutes(10));
  EXPECT_EQ(ReadTrace("a,b\n1,2\n", 1).status().message(),
            "the trace needs submit_time, duration and num_gpu");
  EXPECT_EQ(ReadTrace("submit_time,duration,num_gpu\n1,x,1\n", 1).status().message(),
            "row 2 of the trace: duration or the number of GPUs is no number");
}

}  // namespace
}  // namespace traind
