#include "server/rpc/job_conversion.h"

#include <google/protobuf/message.h>
#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "server/rpc/worker_conversion.h"

namespace traind {
namespace {

const absl::Time kNow = absl::FromUnixMillis(1'795'000'000'123);

Job RunningJob() {
  Job job;
  job.id = "a-1";
  job.spec.name = "a";
  job.spec.metric = "accuracy";
  job.state = JobState::kRunning;
  job.accepted_at = kNow - absl::Seconds(10);
  job.deadline = kNow + absl::Seconds(50);
  Task prepare;
  prepare.kind = TaskKind::kPrepare;
  Task fold;
  fold.fold = 0;
  fold.state = TaskState::kRunning;
  fold.epochs_planned = 20;
  fold.epochs_done = 3;
  fold.live.emplace();
  fold.live->at = kNow - absl::Seconds(1);
  fold.live->epoch = 3.5;
  fold.live->loss = 0.25;
  job.tasks = {prepare, fold};
  return job;
}

TEST(ConvertTest, ARunningJobHasItsTimeAndLiveFigures) {
  const v1::Job job = ToProto(RunningJob(), {"/state", kNow, false});
  EXPECT_EQ(job.remaining_s(), 50);
  EXPECT_FALSE(job.has_started_at());
  EXPECT_FALSE(job.has_finished_at());
  EXPECT_FALSE(job.has_predictions());
  EXPECT_EQ(job.results_dir(), "/state/jobs/a-1");
  ASSERT_EQ(job.folds_size(), 1);  // PREPARE is none
  EXPECT_EQ(job.folds(0).progress().done(), 3.5);
  EXPECT_EQ(job.folds(0).progress().planned(), 20);
  EXPECT_EQ(job.folds(0).live().loss(), 0.25);
}

TEST(ConvertTest, StaleFiguresAndThoseOfAListAreLeftOut) {
  EXPECT_FALSE(ToProto(RunningJob(), {"/s", kNow + absl::Seconds(20), false}).folds(0).has_live());
  EXPECT_FALSE(ToProto(RunningJob(), {"/s", kNow, true}).folds(0).has_live());
}

TEST(ConvertTest, AJobWithoutADeadlineHasNoTimeLeft) {
  Job job = RunningJob();
  job.deadline = absl::InfiniteFuture();
  const v1::Job out = ToProto(job, {"/s", kNow, false});
  EXPECT_FALSE(out.has_deadline());
  EXPECT_FALSE(out.has_remaining_s());
}

TEST(ConvertTest, TheFloorsScoreIsTheLatestOne) {
  Job job = RunningJob();
  job.prediction.emplace();
  job.prediction->floor_score = 0.1;  // when it was published
  EXPECT_EQ(ToProto(job, {"/s", kNow, false}).scores().floor(), 0.1);
  job.floor_score = 0.97;
  EXPECT_EQ(ToProto(job, {"/s", kNow, false}).scores().floor(), 0.97);
}

TEST(ConvertTest, APredictionsPathIsAbsoluteAndItsFoldsAreInOrder) {
  Job job = RunningJob();
  PublishedPrediction p;
  p.number = 2;
  p.path = "jobs/a-1/prediction-2/predictions.csv";
  p.quality = Quality::kDegraded;
  p.members.resize(2);
  p.members[0].fold = 3;
  p.members[1].fold = 1;
  p.oof_score = 0.9;
  p.at = kNow;
  job.prediction = p;
  const v1::Job out = ToProto(job, {"/state", kNow, false});
  EXPECT_EQ(out.predictions().path(), "/state/jobs/a-1/prediction-2/predictions.csv");
  EXPECT_EQ(out.quality(), v1::QUALITY_DEGRADED);
  ASSERT_EQ(out.predictions().folds_size(), 2);
  EXPECT_EQ(out.predictions().folds(0), 1);
  EXPECT_EQ(out.scores().oof(), 0.9);
  EXPECT_FALSE(out.scores().has_test());
  // Without rows to predict there is a score, and no file.
  job.prediction->number = 0;
  const v1::Job scored = ToProto(job, {"/state", kNow, false});
  EXPECT_FALSE(scored.has_predictions());
  EXPECT_EQ(scored.scores().oof(), 0.9);
}

TEST(ConvertTest, TimesBeforeTheEpochAreValid) {
  const auto time = ToProto(absl::FromUnixMillis(-1));
  EXPECT_EQ(time.seconds(), -1);
  EXPECT_EQ(time.nanos(), 999'000'000);
}

TEST(ConvertWorkerTest, DeadlinesTravelAsWhatRemains) {
  Job job = RunningJob();
  job.spec_json = "{}";
  StartCommand start;
  start.worker = "w";
  start.attempt = 9;
  start.job = std::make_shared<const Job>(job);
  start.fold = 0;
  start.slots = {1, 2};
  start.world_size = 2;
  start.deadline = kNow + absl::Milliseconds(1500);
  const v1::StartTask out = ToProto(start, kNow).start();
  EXPECT_EQ(out.remaining_ms(), 1500);
  EXPECT_EQ(out.stop_ms(), -1);
  EXPECT_EQ(out.world_size(), 2);
  start.stop_at = kNow - absl::Seconds(1);
  EXPECT_EQ(ToProto(start, kNow).start().stop_ms(), 0);
  start.deadline = absl::InfiniteFuture();
  EXPECT_EQ(ToProto(start, kNow).start().remaining_ms(), -1);
}

// Every field of a command's message that traind sets is named in the test, or the test fails.
void ExpectAllSetBut(const google::protobuf::Message& message,
                     const std::set<std::string>& left_out) {
  for (int i = 0; i < message.GetDescriptor()->field_count(); ++i) {
    const auto* field = message.GetDescriptor()->field(i);
    if (left_out.count(field->name()) > 0) continue;
    const google::protobuf::Reflection& reflection = *message.GetReflection();
    const bool set = field->is_repeated() ? reflection.FieldSize(message, field) > 0
                                          : reflection.HasField(message, field);
    EXPECT_TRUE(set) << field->full_name();
  }
}

TEST(ConvertWorkerTest, AStartCommandKeepsEveryField) {
  Job job = RunningJob();
  job.spec_json = "{}";
  job.table.table = "cache/t.table";
  job.spec.precision = "bf16";
  job.spec.batch = 128;
  job.spec.folds = 4;
  job.spec.checkpoint_every = absl::Seconds(9);
  StartCommand start;
  start.worker = "w";
  start.attempt = 9;
  start.job = std::make_shared<const Job>(job);
  start.fold = 2;
  start.trial = 2;
  start.seed = 3;
  start.slots = {1, 2};
  start.world_size = 4;
  start.first_rank = 2;
  start.deadline = kNow + absl::Seconds(60);
  start.stop_at = kNow + absl::Seconds(50);
  start.epochs = 12;
  start.row_share = 0.4;
  start.resume = "checkpoint-5.json";
  start.batch = 64;
  start.plan_cut = true;
  v1::StartTask out = ToProto(start, kNow).start();
  EXPECT_EQ(out.attempt(), 9);
  EXPECT_EQ(out.job(), "a-1");
  EXPECT_EQ(out.kind(), v1::StartTask::KIND_TRAIN);
  EXPECT_EQ(out.spec_json(), "{}");
  EXPECT_EQ(out.remaining_ms(), 60'000);
  EXPECT_EQ(out.fold(), 2);
  EXPECT_EQ(out.trial(), 2);
  EXPECT_EQ(out.seed(), 3);
  EXPECT_EQ(out.slots_size(), 2);
  EXPECT_EQ(out.slots(1), 2);
  EXPECT_EQ(out.world_size(), 4);
  EXPECT_EQ(out.first_rank(), 2);
  EXPECT_EQ(out.table(), "cache/t.table");
  EXPECT_EQ(out.epochs(), 12);
  EXPECT_EQ(out.row_share(), 0.4);
  EXPECT_EQ(out.batch(), 64);
  EXPECT_EQ(out.precision(), "bf16");
  EXPECT_EQ(out.resume(), "checkpoint-5.json");
  EXPECT_EQ(out.stop_ms(), 50'000);
  EXPECT_EQ(out.checkpoint_every_ms(), 9'000);
  EXPECT_EQ(out.publish().metric(), "accuracy");
  EXPECT_EQ(out.publish().spec_folds(), 4);
  EXPECT_TRUE(out.publish().plan_cut());
  // A gang of one Worker meets where that Worker says, another one where Meet does.
  ExpectAllSetBut(out, {"rendezvous_host", "rendezvous_port"});
  ExpectAllSetBut(out.publish(), {});
  start.batch = 0;
  EXPECT_EQ(ToProto(start, kNow).start().batch(), 128) << "the spec's";
}

TEST(ConvertWorkerTest, AStopCommandKeepsEveryField) {
  const StopCommand command{"w", 9, StopMode::kDrop, StopReason::kUserPaused, "the job is paused"};
  const v1::StopAttempt out = ToProto(command).stop();
  EXPECT_EQ(out.attempt(), 9);
  EXPECT_EQ(out.mode(), v1::StopAttempt::DROP);
  EXPECT_EQ(out.reason(), v1::STOP_REASON_USER_PAUSED);
  EXPECT_EQ(out.why(), "the job is paused");
  ExpectAllSetBut(out, {});
}

TEST(ConvertWorkerTest, AMeetCommandKeepsEveryField) {
  const v1::Meet out = ToProto(MeetCommand{"w", 9, "10.0.0.1", 4001}).meet();
  EXPECT_EQ(out.attempt(), 9);
  EXPECT_EQ(out.host(), "10.0.0.1");
  EXPECT_EQ(out.port(), 4001);
  ExpectAllSetBut(out, {});
}

TEST(ConvertWorkerTest, AReplanCommandKeepsEveryField) {
  const ReplanCommand command{"w", 9, 4, 0.4, kNow + absl::Seconds(3), kNow + absl::Seconds(9),
                              true};
  const v1::ReplanAttempt out = ToProto(command, kNow).replan();
  EXPECT_EQ(out.attempt(), 9);
  EXPECT_EQ(out.epochs(), 4);
  EXPECT_EQ(out.row_share(), 0.4);
  EXPECT_EQ(out.stop_ms(), 3'000);
  EXPECT_EQ(out.remaining_ms(), 9'000);
  EXPECT_TRUE(out.plan_cut());
  ExpectAllSetBut(out, {});
}

TEST(ConvertWorkerTest, AHelloKeepsEveryField) {
  v1::Hello hello;
  hello.set_worker_id("w");
  hello.set_boot_id("b");
  hello.set_hostname("h");
  hello.set_pid(17);
  hello.add_running_attempts(9);
  hello.set_own_folder(true);
  hello.set_address("10.0.0.1");
  hello.set_lent_as("name/7");
  (*hello.mutable_labels())["rack"] = "a";
  v1::SlotInfo& slot = *hello.add_slots();
  slot.set_index(3);
  slot.set_device("cuda");
  slot.set_name("A");
  slot.set_uuid("GPU-1");
  slot.set_memory_bytes(5);
  const WorkerAttached event = AttachedFromProto(hello, 4);
  EXPECT_EQ(event.worker, "w");
  EXPECT_EQ(event.boot, "b");
  EXPECT_EQ(event.session, 4u);
  EXPECT_EQ(event.hostname, "h");
  EXPECT_EQ(event.pid, 17);
  EXPECT_TRUE(event.own_folder);
  EXPECT_EQ(event.address, "10.0.0.1");
  EXPECT_EQ(event.labels, (std::set<std::string>{"rack=a"}));
  EXPECT_EQ(event.running_attempts, std::vector<int64_t>{9});
  ASSERT_EQ(event.slots.size(), 1u);
  EXPECT_EQ(event.slots[0].index, 3);
  EXPECT_EQ(event.slots[0].device, "cuda");
  EXPECT_EQ(event.slots[0].name, "A");
  EXPECT_EQ(event.slots[0].uuid, "GPU-1");
  EXPECT_EQ(event.slots[0].memory_bytes, 5);
  // Which task runs in a slot is traind's to know; what a GPU does comes with heartbeats.
  ExpectAllSetBut(slot, {"job", "task", "attempt", "figures"});
  // The core decides nothing by these.
  ExpectAllSetBut(hello, {"version", "engine", "epoch"});
}

}  // namespace
}  // namespace traind
