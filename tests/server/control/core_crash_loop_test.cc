// A traind that is killed again and again, each time before it has waited for a lease.
#include "tests/server/control/control_core_harness.h"

namespace traind {
namespace {

// A Job with one fold that runs on worker "w".
struct Running {
  Running() {
    h.Attach("w", 1);
    id = h.SubmitJob(h.MakeJob("a", 1));
    h.PrepareJob(id);
    attempt = h.AttemptOf(id, 1);
    h.Say(attempt, h.CheckpointAt(100, 1));
  }
  // traind starts, and is killed after `life`.
  void Live(absl::Duration life) {
    h.Crash();
    h.Step();
    h.Wait(life);
  }
  bool Lost() { return h.EndOf(id, attempt) == AttemptEndReason::kWorkerLost; }

  CoreHarness h;
  std::string id;
  int64_t attempt = 0;
  const absl::Duration lease = CoreOptions().lease;
};

TEST(CrashLoopTest, AWorkerThatIsGoneIsLostWithinTwoLeases) {
  for (const int life_ms : {100, 500, 2'000, 7'000}) {
    Running r;
    const absl::Time gone = r.h.now;
    while (!r.Lost() && r.h.now < gone + 2 * r.lease) r.Live(absl::Milliseconds(life_ms));
    EXPECT_TRUE(r.Lost()) << life_ms;
  }
}

TEST(CrashLoopTest, AWorkerHasAWholeLeaseOfTheTimeThatTraindRan) {
  Running r;
  for (int i = 0; i < 3; ++i) {
    r.h.now += absl::Hours(1);  // nobody waits meanwhile
    r.Live(absl::Milliseconds(10));
  }
  r.Live(r.lease / 2);
  EXPECT_FALSE(r.Lost());
  r.h.Attach("w", 1, {r.attempt});
  EXPECT_EQ(r.h.AttemptOf(r.id, 1), r.attempt);
}

TEST(CrashLoopTest, SilenceIsForgottenWhenTheWorkerIsHeard) {
  Running r;
  for (int i = 0; i < 20; ++i) {
    r.Live(absl::Seconds(2));
    r.h.Attach("w", 1, {r.attempt});
    ASSERT_FALSE(r.Lost());
  }
  r.Live(r.lease * 3 / 4);
  EXPECT_FALSE(r.Lost());
}

TEST(CrashLoopTest, ADrainedWorkerHasItsLeaseToo) {
  Running r;
  r.h.Step({UpdateWorker{5, "w", WorkerMode::kDraining, absl::Minutes(5)}});
  r.Live(r.lease / 2);
  EXPECT_FALSE(r.Lost());
  r.h.Wait(r.lease);
  EXPECT_TRUE(r.Lost());
}

// "a" and "b" have two slots each, a fold wants four, and "b" is gone.
TEST(CrashLoopTest, AGangGoesOnWithFewerRanks) {
  CoreHarness h;
  const auto host = [&h](const std::string& name) {
    WorkerAttached hello = h.Hello(name, 2);
    hello.hostname = name;
    hello.address = name == "a" ? "10.0.0.1" : "10.0.0.2";
    return hello;
  };
  h.Step({host("a"), host("b")});
  Job job = h.MakeJob("wide", 1);
  job.spec.slots = 4;
  job.spec.budget = absl::Minutes(10);
  const std::string id = h.SubmitJob(job);
  const std::string reader = h.Stored(id).attempts.at(0).worker;
  const int64_t prepare = h.AttemptOf(id, 0);
  h.Say(prepare, h.Table(), reader);
  h.Say(prepare, h.Ended(), reader);
  ASSERT_EQ(SlotCount(h.Stored(id).attempts.back()), 4);
  const absl::Time gone = h.now;
  const auto fewer = [&] {
    const Attempt last = h.Stored(id).attempts.back();  // what is stored is a copy
    return last.kind == TaskKind::kTrain && SlotCount(last) == 2;
  };
  while (!fewer() && h.now < gone + 3 * CoreOptions().lease) {
    h.Crash();
    h.Step({host("a")});
    h.Wait(absl::Seconds(2));
  }
  EXPECT_TRUE(fewer());
}

}  // namespace
}  // namespace traind
