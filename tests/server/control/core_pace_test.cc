// Epochs that are shorter than the machine's own unrest, or than those to come.
#include <gmock/gmock.h>

#include "tests/server/control/control_core_harness.h"

namespace traind {
namespace {

TEST(PaceTest, ManyShortEpochsAreMeasuredTogetherSoThatThePlanHoldsStill) {
  CoreHarness h;
  h.Attach("w", 1);
  Job job = CoreHarness::MakeJob("a", 2);
  job.spec.budget = absl::Seconds(20);
  job.spec.epochs = 100'000;
  const std::string id = h.SubmitJob(job);
  h.PrepareJob(id);
  const int64_t attempt = h.AttemptOf(id, 1);
  h.Say(attempt, CoreHarness::Started(7));
  h.Say(attempt, CoreHarness::Probe(0.0001));
  int64_t sequence = 1000;
  for (int epoch = 1; epoch <= 4000; ++epoch) {
    h.now += absl::Milliseconds(1);
    facts::Epoch done;
    done.epoch = epoch;
    done.step = 7 * epoch;
    // Every third one was disturbed.
    done.epoch_s = epoch % 3 == 0 ? 0.002 : 0.0005;
    h.Step({WorkerFact{"w", h.session, ++sequence, attempt, done}});
    if (h.TaskOf(id, 1).state != TaskState::kRunning) break;
    ASSERT_GE(h.Stored(id).plans.back().epochs, epoch) << "it would have ended there";
  }
  // Cut to what fits, and corrected a few times while the first second goes by.
  EXPECT_LE(h.Stored(id).decisions.size(), 8u);
}

// The probe counts on steps of the whole network, 100 of 0.1 s an epoch.
TEST(PaceTest, EpochsThatTrainTheHeadAloneSayNothingOfThoseToCome) {
  for (const bool head_only : {true, false}) {
    CoreHarness h;
    h.Attach("w", 1);
    Job job = CoreHarness::MakeJob("a", 2);
    job.spec.budget = absl::Seconds(60);
    const std::string id = h.SubmitJob(job);
    h.PrepareJob(id);
    const int64_t attempt = h.AttemptOf(id, 1);
    h.Say(attempt, CoreHarness::Started(100));
    h.Say(attempt, CoreHarness::Probe(0.1));
    const int64_t by_probe = h.Stored(id).plans.back().epochs;
    for (int epoch = 1; epoch <= 2; ++epoch) {
      h.now += absl::Milliseconds(20);
      facts::Epoch done;
      done.epoch = epoch;
      done.step = 100 * epoch;
      done.epoch_s = 0.02;
      done.head_only = head_only;
      h.Say(attempt, done);
    }
    const int64_t by_epochs = h.Stored(id).plans.back().epochs;
    EXPECT_EQ(by_epochs > by_probe, !head_only) << by_probe << " epochs, then " << by_epochs;
  }
}

}  // namespace
}  // namespace traind
