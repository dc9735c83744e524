// The small parts of the Worker daemon, each by itself.
#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>
#include <absl/time/clock.h>
#include <gmock/gmock.h>
#include <google/protobuf/descriptor.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <limits>
#include <map>
#include <random>

#include "common/base/clock.h"
#include "common/base/cores.h"
#include "worker/daemon/backoff.h"
#include "worker/daemon/devices.h"
#include "worker/daemon/memory_guard.h"
#include "worker/daemon/outbox.h"
#include "worker/daemon/process_work.h"
#include "worker/daemon/publish_schedule.h"
#include "worker/daemon/report_conversion.h"
#include "worker/daemon/spares.h"
#include "worker/daemon/watchdog.h"

namespace traind::worker {
namespace {

namespace rp = rank_protocol;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr absl::Duration kNow = absl::Seconds(1000);

// ---- backoff ----------------------------------------------------------------

TEST(BackoffTest, DistancesDoubleUpToTheMostWithJitter) {
  std::mt19937 random(1);
  Backoff backoff(absl::Milliseconds(50), absl::Seconds(2));
  absl::Duration whole = absl::Milliseconds(50);
  for (int i = 0; i < 10; ++i) {
    const absl::Duration wait = backoff.Next(random);
    EXPECT_GE(wait, whole / 2);
    EXPECT_LE(wait, whole);
    whole = std::min(2 * whole, absl::Seconds(2));
  }
  backoff.Reset();
  EXPECT_LE(backoff.Next(random), absl::Milliseconds(50));
}

// ---- spares -----------------------------------------------------------------

TEST(WantedSparesTest, IdleSlotsAndOneInReserve) {
  constexpr int64_t kPlenty = int64_t{64} << 30;
  EXPECT_EQ(WantedSpares(4, 0, kPlenty), 4);
  EXPECT_EQ(WantedSpares(4, 1, kPlenty), 4);
  EXPECT_EQ(WantedSpares(4, 4, kPlenty), 1);
  EXPECT_EQ(WantedSpares(2, 5, kPlenty), 1);
}

TEST(WantedSparesTest, MemoryLimitsThemButNotTheFirst) {
  EXPECT_EQ(WantedSpares(64, 0, kMemoryReserve + 3 * kSpareBytes), 3);
  EXPECT_EQ(WantedSpares(64, 0, 0), 1);
  EXPECT_EQ(WantedSpares(4, 4, 0), 0);
}

TEST(SpareBackoffTest, GrowsToAMinute) {
  EXPECT_EQ(SpareBackoff(0), absl::ZeroDuration());
  EXPECT_EQ(SpareBackoff(1), absl::Milliseconds(500));
  EXPECT_EQ(SpareBackoff(1000), absl::Minutes(1));
}

// ---- watchdog ---------------------------------------------------------------

TEST(ProcessWorkTest, GrowsWithWorkAndStandsStillWithoutIt) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const pid_t child = fork();
  if (child == 0) {  // works when told to, and waits in a read between
    close(ends[1]);
    char byte;
    while (read(ends[0], &byte, 1) == 1) {
      const clock_t end = clock() + CLOCKS_PER_SEC / 5;
      while (clock() < end) {
      }
    }
    _exit(0);
  }
  close(ends[0]);
  int64_t before = WorkOf(child);
  absl::SleepFor(absl::Milliseconds(200));  // in which it does nothing
  EXPECT_LT(WorkOf(child), before + kSignOfWork);
  ASSERT_EQ(write(ends[1], "x", 1), 1);
  const absl::Duration give_up = SystemClock().MonotonicNow() + absl::Seconds(30);
  while (WorkOf(child) < before + kSignOfWork && SystemClock().MonotonicNow() < give_up) {
    absl::SleepFor(absl::Milliseconds(5));
  }
  EXPECT_GE(WorkOf(child), before + kSignOfWork);
  close(ends[1]);
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(WorkOf(child), 0);
}

TEST(WatchdogTest, WhatIsMeasuredSetsTheSilence) {
  Watchdog watchdog(absl::Seconds(30), absl::Seconds(120), kNow);
  EXPECT_EQ(watchdog.due(), kNow + absl::Seconds(120)) << "reading the table may take long";
  watchdog.Heard(rp::Started{}, kNow + absl::Seconds(5));
  EXPECT_EQ(watchdog.due(), kNow + absl::Seconds(35));
  rp::Probe probe;
  probe.step_s = 2;
  watchdog.Heard(probe, kNow + absl::Seconds(6));
  EXPECT_EQ(watchdog.Allowed(), absl::Seconds(40)) << "20 steps";
  rp::Epoch epoch;
  epoch.evaluate_s = 50;
  watchdog.Heard(epoch, kNow + absl::Seconds(7));
  EXPECT_EQ(watchdog.Allowed(), absl::Seconds(150)) << "3 validation passes";
}

TEST(WatchdogTest, NoFigureSwitchesItOff) {
  Watchdog watchdog(absl::Seconds(30), absl::Seconds(30), kNow);
  watchdog.Heard(rp::Started{}, kNow);
  rp::Probe probe;
  for (const double bad :
       {std::numeric_limits<double>::quiet_NaN(), -1.0, std::numeric_limits<double>::infinity()}) {
    probe.step_s = probe.evaluate_s = probe.predict_s = bad;
    watchdog.Heard(probe, kNow);
    EXPECT_EQ(watchdog.Allowed(), absl::Seconds(30));
  }
  probe.step_s = 1e300;
  watchdog.Heard(probe, kNow);
  EXPECT_EQ(watchdog.Allowed(), 20 * absl::Hours(24));
}

// ---- publish schedule -------------------------------------------------------

class HomesTest : public ::testing::Test {
 protected:
  HomesTest() {
    publish_schedule_.Connected();
    TaskStart& task = task_;
    task.attempt = 7;
    task.job = "a";
    task.kind = TaskKind::kTrain;
    task.table = "t";
    task.metric = "accuracy";
    task.spec_folds = 5;
    task.deadline_at = kNow + absl::Seconds(10);
    publish_schedule_.Started(task, kNow);
  }
  void Save(int fold, int64_t attempt, bool complete, absl::Duration at) {
    rp::FoldSaved saved;
    saved.fold = fold;
    saved.attempt = attempt;
    saved.complete = complete;
    FoldSaved(saved, at);
  }
  // The Task says which model it is.
  void FoldSaved(const rp::FoldSaved& saved, absl::Duration at) {
    TaskStart task = task_;
    task.fold = saved.fold;
    task.trial = saved.trial;
    task.seed = saved.seed;
    publish_schedule_.FoldSaved(task, saved, at);
  }
  TaskStart task_;
  PublishSchedule publish_schedule_{PublishSchedule::Options{}};
};

TEST_F(HomesTest, TraindPublishesWhileItIsThere) {
  Save(0, 7, true, kNow);
  EXPECT_THAT(publish_schedule_.Due(kNow + absl::Seconds(5), false), IsEmpty());
}

TEST_F(HomesTest, WhatTraindHadTimeToPublishIsItsOwn) {
  Save(0, 7, true, kNow);
  EXPECT_THAT(publish_schedule_.Due(kNow + absl::Seconds(6), false), IsEmpty());
  publish_schedule_.Disconnected(kNow + absl::Seconds(7));
  EXPECT_THAT(publish_schedule_.Due(kNow + absl::Seconds(9), false), IsEmpty());
  // The next news brings all members again.
  Save(1, 8, true, kNow + absl::Seconds(9));
  EXPECT_EQ(publish_schedule_.Due(kNow + absl::Seconds(9), false)[0].members.size(), 2u);
}

TEST_F(HomesTest, TrialsOfAFoldStandBesideEachOther) {
  task_.model = "lightgbm";
  Save(0, 7, true, kNow);
  rp::FoldSaved extra;
  extra.trial = 4;
  extra.last = true;
  extra.attempt = 8;
  task_.model = "mlp";
  FoldSaved(extra, kNow);
  publish_schedule_.Disconnected(kNow);
  const auto due = publish_schedule_.Due(kNow + absl::Seconds(2), true);
  ASSERT_EQ(due.size(), 1u);
  ASSERT_EQ(due[0].members.size(), 2u);
  EXPECT_EQ(due[0].members[0].kind, "lightgbm");
  EXPECT_EQ(due[0].members[0].trial, 0);
  EXPECT_EQ(due[0].members[1].kind, "mlp");
  EXPECT_EQ(due[0].members[1].trial, 4);
}

TEST_F(HomesTest, ModelsOfAFoldStandBesideEachOther) {
  Save(0, 7, true, kNow);
  rp::FoldSaved extra;
  extra.fold = 0;
  extra.seed = 1;
  extra.attempt = 8;
  FoldSaved(extra, kNow);  // while it trains
  extra.last = true;
  extra.step = 5;
  FoldSaved(extra, kNow);
  extra.last = false;
  extra.step = 6;
  FoldSaved(extra, kNow);
  publish_schedule_.Disconnected(kNow);
  const auto due = publish_schedule_.Due(kNow + absl::Seconds(2), true);
  ASSERT_EQ(due.size(), 1u);
  ASSERT_EQ(due[0].members.size(), 2u);
  EXPECT_TRUE(due[0].members[0].complete);
  EXPECT_EQ(due[0].members[1].seed, 1);
  EXPECT_EQ(due[0].members[1].attempt, 8);
  EXPECT_EQ(due[0].members[1].step, 5);
}

TEST_F(HomesTest, AnUnfinishedRetryHidesNoWholeFold) {
  Save(0, 7, true, kNow);
  Save(0, 8, false, kNow);
  Save(1, 9, false, kNow);
  Save(1, 10, true, kNow);
  publish_schedule_.Disconnected(kNow);
  const auto due = publish_schedule_.Due(kNow + absl::Seconds(2), true);
  ASSERT_EQ(due.size(), 1u);
  ASSERT_EQ(due[0].members.size(), 2u);
  EXPECT_EQ(due[0].members[0].attempt, 7);
  EXPECT_EQ(due[0].members[1].attempt, 10);
}

TEST_F(HomesTest, WhatTraindHasNotTakenStaysDue) {
  Save(0, 7, true, kNow);
  EXPECT_THAT(publish_schedule_.Due(kNow + absl::Seconds(6), true), IsEmpty());
  publish_schedule_.Disconnected(kNow + absl::Seconds(7));
  EXPECT_EQ(publish_schedule_.Due(kNow + absl::Seconds(9), true).size(), 1u);
}

TEST_F(HomesTest, TraindMayComeBackWithinThePatience) {
  Save(0, 7, true, kNow);
  publish_schedule_.Disconnected(kNow + absl::Seconds(1));
  EXPECT_THAT(publish_schedule_.Due(kNow + absl::Milliseconds(1'400), false), IsEmpty());
  publish_schedule_.Connected();
  EXPECT_THAT(publish_schedule_.Due(kNow + absl::Seconds(2), false), IsEmpty());
  publish_schedule_.Disconnected(kNow + absl::Seconds(3));
  EXPECT_EQ(publish_schedule_.NextWakeup(), kNow + absl::Milliseconds(3'500));
  EXPECT_EQ(publish_schedule_.Due(kNow + absl::Milliseconds(3'500), false).size(), 1u);
}

TEST_F(HomesTest, EachPieceOfNewsIsPublishedOnceAndNotTwoAtATime) {
  publish_schedule_.Disconnected(kNow);
  Save(0, 7, false, kNow + absl::Seconds(1));
  EXPECT_EQ(publish_schedule_.Due(kNow + absl::Seconds(1), false).size(), 1u);
  EXPECT_TRUE(publish_schedule_.busy());
  Save(1, 8, true, kNow + absl::Seconds(2));
  EXPECT_THAT(publish_schedule_.Due(kNow + absl::Seconds(2), false), IsEmpty()) << "one is running";
  publish_schedule_.Published("a", true, kNow + absl::Seconds(3));
  const std::vector<PublishRequest> due = publish_schedule_.Due(kNow + absl::Seconds(3), false);
  ASSERT_EQ(due.size(), 1u);
  EXPECT_EQ(due[0].members.size(), 2u);
  publish_schedule_.Published("a", true, kNow + absl::Seconds(4));
  EXPECT_THAT(publish_schedule_.Due(kNow + absl::Seconds(4), false), IsEmpty());
  EXPECT_EQ(publish_schedule_.NextWakeup(), absl::InfiniteDuration());
}

TEST_F(HomesTest, AFailureIsTriedAgainAfterAWhile) {
  publish_schedule_.Disconnected(kNow);
  Save(0, 7, true, kNow + absl::Seconds(1));
  EXPECT_EQ(publish_schedule_.Due(kNow + absl::Seconds(1), false).size(), 1u);
  publish_schedule_.Published("a", false, kNow + absl::Seconds(1));
  EXPECT_THAT(publish_schedule_.Due(kNow + absl::Seconds(2), false), IsEmpty());
  EXPECT_EQ(publish_schedule_.Due(kNow + absl::Seconds(3), false).size(), 1u);
}

TEST_F(HomesTest, ShortlyBeforeTheDeadlineThereIsNoPatience) {
  Save(0, 7, true, kNow + absl::Seconds(9));
  publish_schedule_.Disconnected(kNow + absl::Milliseconds(9'600));
  EXPECT_EQ(publish_schedule_.NextWakeup(), kNow + absl::Milliseconds(9'700));
  EXPECT_EQ(publish_schedule_.Due(kNow + absl::Milliseconds(9'700), false).size(), 1u);
}

TEST_F(HomesTest, ADeafTraindIsNotWaitedForAtTheDeadline) {
  Save(0, 7, true, kNow + absl::Seconds(9));
  EXPECT_THAT(publish_schedule_.Due(kNow + absl::Milliseconds(9'650), true), IsEmpty());
  EXPECT_EQ(publish_schedule_.Due(kNow + absl::Milliseconds(9'700), true).size(), 1u);
}

TEST_F(HomesTest, AWholeFoldIsNotReplacedByARetrysFirstSteps) {
  publish_schedule_.Disconnected(kNow);
  Save(0, 7, true, kNow);
  Save(0, 9, false, kNow);
  EXPECT_EQ(publish_schedule_.Due(kNow + absl::Seconds(1), false)[0].members[0].attempt, 7);
}

TEST_F(HomesTest, AFloorAloneIsPublishedWithoutMembers) {
  TaskStart task;
  task.job = "b";
  task.metric = "rmse";
  publish_schedule_.Started(task, kNow);
  publish_schedule_.Disconnected(kNow);
  publish_schedule_.FloorSaved("b", kNow);
  EXPECT_THAT(publish_schedule_.Due(kNow + absl::Seconds(1), false), IsEmpty())
      << "its table is not known";
  rp::TableReady table;
  table.table = "cache/b.table";
  publish_schedule_.TableRead("b", table, kNow);
  const std::vector<PublishRequest> due = publish_schedule_.Due(kNow + absl::Seconds(1), false);
  ASSERT_EQ(due.size(), 1u);
  EXPECT_EQ(due[0].table, "cache/b.table");
  EXPECT_THAT(due[0].members, IsEmpty());
}

// ---- outbox -----------------------------------------------------------------

std::vector<int64_t> Sequences(const Outbox& outbox) {
  std::vector<int64_t> sequences;
  for (const v1::WorkerMessage& message : outbox.Unacked()) {
    sequences.push_back(message.sequence());
  }
  return sequences;
}

TEST(OutboxTest, FactsAreKeptInOrderUntilTheirAck) {
  Outbox outbox;
  for (int i = 0; i < 5; ++i) outbox.Add({}, kNow + absl::Seconds(i));
  outbox.Ack(2);
  EXPECT_THAT(Sequences(outbox), ElementsAre(3, 4, 5));
  outbox.Ack(1);  // an old one, late
  EXPECT_EQ(outbox.Waiting(kNow + absl::Seconds(12)), absl::Seconds(10));
  outbox.Reset(kNow + absl::Seconds(12));
  EXPECT_EQ(outbox.Waiting(kNow + absl::Seconds(13)), absl::Seconds(1));
  outbox.Ack(5);
  EXPECT_TRUE(outbox.empty());
  EXPECT_EQ(outbox.Waiting(kNow), absl::ZeroDuration());
  EXPECT_EQ(outbox.Add({}, kNow).sequence(), 6) << "numbers are never used again";
}

// ---- convert ----------------------------------------------------------------

std::string Text(const TaskStart& t) {
  return absl::StrCat(
      absl::StrJoin(
          {absl::StrCat(t.attempt), t.job, absl::StrCat(static_cast<int>(t.kind)), t.spec_json,
           absl::FormatDuration(t.deadline_at), absl::StrCat(t.fold), absl::StrCat(t.trial),
           absl::StrCat(t.seed), t.model, absl::StrJoin(t.slots, "+")},
          "|"),
      "|",
      absl::StrJoin({absl::StrCat(t.world_size), absl::StrCat(t.first_rank), t.rendezvous_host,
                     absl::StrCat(t.rendezvous_port), t.table, absl::StrCat(t.epochs),
                     absl::StrCat(t.row_share), absl::StrCat(t.batch), t.precision, t.resume,
                     absl::FormatDuration(t.stop_at), absl::FormatDuration(t.checkpoint_every),
                     t.metric, absl::StrCat(t.spec_folds), absl::StrCat(t.plan_cut)},
                    "|"));
}

TEST(ConvertTest, AStartTaskKeepsEveryField) {
  v1::StartTask start;
  start.set_attempt(7);
  start.set_job("j");
  start.set_kind(v1::StartTask::KIND_TRAIN);
  start.set_spec_json("{}");
  start.set_remaining_ms(5'000);
  start.set_fold(2);
  start.add_slots(1);
  start.add_slots(3);
  start.set_world_size(4);
  start.set_first_rank(2);
  start.set_rendezvous_host("h");
  start.set_rendezvous_port(99);
  start.set_table("t");
  start.set_epochs(12);
  EXPECT_EQ(TaskFromProto(start, kNow).row_share, 1) << "not told";
  start.set_row_share(0.4);
  start.set_trial(1);
  start.set_seed(6);
  start.set_batch(64);
  start.set_precision("bf16");
  start.set_resume("r");
  start.set_stop_ms(4'000);
  start.set_checkpoint_every_ms(700);
  start.mutable_publish()->set_metric("auc");
  start.mutable_publish()->set_spec_folds(5);
  start.mutable_publish()->set_plan_cut(true);
  const TaskStart task = TaskFromProto(start, kNow);
  EXPECT_EQ(task.attempt, 7);
  EXPECT_EQ(task.job, "j");
  EXPECT_EQ(task.kind, TaskKind::kTrain);
  EXPECT_EQ(task.spec_json, "{}");
  EXPECT_EQ(task.deadline_at, kNow + absl::Seconds(5));
  EXPECT_EQ(task.fold, 2);
  EXPECT_THAT(task.slots, ElementsAre(1, 3));
  EXPECT_EQ(task.world_size, 4);
  EXPECT_EQ(task.first_rank, 2);
  EXPECT_EQ(task.rendezvous_host, "h");
  EXPECT_EQ(task.rendezvous_port, 99);
  EXPECT_EQ(task.table, "t");
  EXPECT_EQ(task.epochs, 12);
  EXPECT_EQ(task.row_share, 0.4);
  EXPECT_EQ(task.trial, 1);
  EXPECT_EQ(task.seed, 6);
  EXPECT_EQ(task.batch, 64);
  EXPECT_EQ(task.precision, "bf16");
  EXPECT_EQ(task.resume, "r");
  EXPECT_EQ(task.stop_at, kNow + absl::Seconds(4));
  EXPECT_EQ(task.checkpoint_every, absl::Milliseconds(700));
  EXPECT_EQ(task.metric, "auc");
  EXPECT_EQ(task.spec_folds, 5);
  EXPECT_TRUE(task.plan_cut);
  // None of them can get lost without a difference. (A Train is what an unset kind is.)
  const google::protobuf::Descriptor& fields = *v1::StartTask::descriptor();
  for (int i = 0; i < fields.field_count(); ++i) {
    if (fields.field(i)->name() == "kind") continue;
    v1::StartTask without = start;
    without.GetReflection()->ClearField(&without, fields.field(i));
    EXPECT_NE(Text(TaskFromProto(without, kNow)), Text(task)) << fields.field(i)->name();
  }
}

TEST(ConvertTest, APrepareFindsItsMetricInTheSpecAndHasNoStop) {
  v1::StartTask start;
  start.set_kind(v1::StartTask::KIND_PREPARE);
  start.set_remaining_ms(-1);
  start.set_spec_json(R"({"task":{"metric":"r2"},"data":{"folds":3}})");
  const TaskStart task = TaskFromProto(start, kNow);
  EXPECT_EQ(task.metric, "r2");
  EXPECT_EQ(task.spec_folds, 3);
  EXPECT_EQ(task.deadline_at, absl::InfiniteDuration());
  EXPECT_EQ(task.stop_at, absl::InfiniteDuration()) << "0 of an unset field is no stop at once";
}

TEST(ConvertTest, ASpecThatIsNoSpecIsNotFatalHere) {
  v1::StartTask start;
  for (const char* spec : {"", "[1]", "{\"task\":7}", "{\"task\":{\"metric\":[]}}", "{"}) {
    start.set_spec_json(spec);
    EXPECT_EQ(TaskFromProto(start, kNow).metric, "") << spec;
  }
}

TEST(ConvertTest, UnknownStopModesAbort) {
  EXPECT_EQ(StopModeFromProto(v1::StopAttempt::PREDICT), StopMode::kPredict);
  EXPECT_EQ(StopModeFromProto(v1::StopAttempt::DROP), StopMode::kDrop);
  EXPECT_EQ(StopModeFromProto(v1::StopAttempt::MODE_UNSPECIFIED), StopMode::kAbort);
}

TEST(ConvertTest, TheKindOfModelIsThatOfTheTrial) {
  v1::StartTask start;
  start.set_kind(v1::StartTask::KIND_TRAIN);
  start.set_spec_json(R"({"model": {"automatic": {}},
    "trials": [{"name": "a", "model": {"lightgbm": {}}}, {"name": "b", "model": {"mlp": {}}}]})");
  EXPECT_EQ(TaskFromProto(start, kNow).model, "lightgbm");
  start.set_trial(1);
  EXPECT_EQ(TaskFromProto(start, kNow).model, "mlp");
  start.set_trial(0);
  start.set_spec_json(R"({"model": {"cnn": {}}})");
  EXPECT_EQ(TaskFromProto(start, kNow).model, "cnn");
}

TEST(ConvertTest, UnknownStopReasonsAreNone) {
  EXPECT_EQ(StopReasonFromProto(v1::STOP_REASON_USER_CANCELLED), StopReason::kUserCancelled);
  EXPECT_EQ(StopReasonFromProto(static_cast<v1::StopReason>(99)), StopReason::kNone);
}

TEST(ConvertTest, AReportNamesItsAttempt) {
  facts::FoldSaved fold;
  fold.trial = 2;
  fold.seed = 3;
  const v1::WorkerMessage message = ReportToProto({7, fold});
  EXPECT_EQ(message.report().attempt(), 7);
  EXPECT_EQ(message.report().fold_saved().trial(), 2);
  EXPECT_EQ(message.report().fold_saved().seed(), 3);
}

// ---- devices ----------------------------------------------------------------

GpuCheck AllUsable() {
  return [](const std::vector<Slot>& gpus) { return std::vector<absl::Status>(gpus.size()); };
}

TEST(DevicesTest, WithoutADriverCoresAreTheSlots) {
  const auto slots = FindSlots({"auto", 0}, nullptr, AllUsable());
  ASSERT_TRUE(slots.ok());
  EXPECT_EQ(static_cast<int>(slots->size()), UsableCores());
  EXPECT_EQ(slots->front().device, "cpu");
  EXPECT_FALSE(slots->front().name.empty());
  EXPECT_GT(slots->front().memory_bytes, 0);
  EXPECT_EQ(FindSlots({"cpu", 7}, nullptr, AllUsable())->size(), 7u);
}

TEST(DevicesTest, MoreSlotsThanAMachineCarriesAreRefused) {
  EXPECT_TRUE(CheckSlots(64, 1).ok()) << "GPUs";
  EXPECT_TRUE(CheckSlots(400, 100).ok());
  const absl::Status refused = CheckSlots(65, 2);
  EXPECT_TRUE(absl::IsInvalidArgument(refused));
  EXPECT_THAT(refused.message(), HasSubstr("65 slots on 2 cores: at most 64 are taken"));
  EXPECT_TRUE(absl::IsInvalidArgument(FindSlots({"cpu", 4096}, nullptr, AllUsable()).status()));
}

TEST(DevicesTest, WhatIsNotThereIsAnError) {
  EXPECT_TRUE(absl::IsNotFound(FindSlots({"cuda", 0}, nullptr, AllUsable()).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(FindSlots({"tpu", 0}, nullptr, AllUsable()).status()));
}

TEST(DevicesTest, GpusThatNoRankCanUseAreLeftOut) {
  const std::vector<Nvml::Device> gpus = {{"Old", "GPU-a", 7, 0, 1},
                                          {"Broken", "GPU-b", 9, 0, 1},
                                          {"Good", "GPU-c", 9, 0, 1},
                                          {"Spare", "GPU-d", 9, 0, 1}};
  const auto only = [](const std::string& usable) {
    return [usable](const std::vector<Slot>& listed) {
      std::vector<absl::Status> checked;
      for (const Slot& slot : listed) {
        checked.push_back(slot.name == usable ? absl::OkStatus()
                                              : absl::UnavailableError("the driver is too old"));
      }
      return checked;
    };
  };
  const auto one = FindSlots({"auto", 0}, &gpus, only("Good"));
  ASSERT_TRUE(one.ok());
  ASSERT_EQ(one->size(), 1u);
  EXPECT_EQ(one->front().uuid, "GPU-c");
  EXPECT_EQ(FindSlots({"cuda", 1}, &gpus, AllUsable())->front().uuid, "GPU-b");
  const auto cores = FindSlots({"auto", 0}, &gpus, only(""));
  ASSERT_TRUE(cores.ok());
  EXPECT_EQ(cores->front().device, "cpu");
  EXPECT_TRUE(absl::IsNotFound(FindSlots({"cuda", 0}, &gpus, only("")).status()));
}

TEST(DevicesTest, VisibleDevicesAreChosenAsCudaDoes) {
  const std::vector<Nvml::Device> all = {
      {"A", "GPU-aa", 9, 0, 1}, {"B", "GPU-ab", 9, 0, 1}, {"C", "GPU-b", 9, 0, 1}};
  const auto names = [&](absl::string_view visible) {
    std::string names;
    for (const Nvml::Device& device : VisibleDevices(all, visible)) names += device.name;
    return names;
  };
  EXPECT_EQ(names("2,0"), "CA");
  EXPECT_EQ(names("GPU-b"), "C");
  EXPECT_EQ(names(" 1 , GPU-aa"), "BA");
  EXPECT_EQ(names("0,-1,1"), "A") << "ends at the first that is not there";
  EXPECT_EQ(names("3"), "");
  EXPECT_EQ(names(""), "");
}

TEST(MemoryGuardTest, OnlyAKillOfTheLastSecondsExplainsADeath) {
  int64_t kills = 7;
  MemoryGuard guard([&kills] { return kills; });
  EXPECT_FALSE(guard.RanOut());
  kills = 8;  // a process of somebody else
  guard.Look();
  guard.Look();
  EXPECT_FALSE(guard.RanOut());
  EXPECT_FALSE(guard.short_of_memory());
  kills = 9;
  guard.Look();  // before the death is noticed
  EXPECT_TRUE(guard.RanOut());
  EXPECT_FALSE(guard.RanOut());
  EXPECT_TRUE(guard.short_of_memory());
}

TEST(MemoryGuardTest, TwoKillsAtOnceExplainTwoDeathsAndNoThird) {
  int64_t kills = 3;
  MemoryGuard guard([&kills] { return kills; });
  guard.Look();
  kills = 5;
  EXPECT_TRUE(guard.RanOut());
  guard.Look();
  EXPECT_TRUE(guard.RanOut());
  EXPECT_FALSE(guard.RanOut());
  guard.Look();
  EXPECT_FALSE(guard.RanOut());
}

TEST(MemoryGuardTest, ASlotsShareIsOfWhatIsFreeAndOfWhatTheOthersHave) {
  EXPECT_EQ(MemoryShare(600, 400, 2), 450);
  EXPECT_EQ(MemoryShare(1000, 0, 1), 900);
}

TEST(DevicesTest, WhereADriverIsItsDevicesAreComplete) {
  const std::unique_ptr<Nvml> nvml = Nvml::Load();
  if (nvml == nullptr) GTEST_SKIP() << "no NVIDIA driver here";
  for (const Nvml::Device& device : nvml->Devices()) {
    EXPECT_EQ(device.uuid.substr(0, 4), "GPU-");
    EXPECT_FALSE(device.name.empty());
    EXPECT_GE(device.major, 1);
    EXPECT_GT(device.total_bytes, 1u << 20);
  }
}

}  // namespace
}  // namespace traind::worker
