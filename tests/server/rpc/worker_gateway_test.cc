#include "server/rpc/worker_gateway.h"

#include <absl/strings/str_cat.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "common/base/clock.h"
#include "common/base/engine_version.h"
#include "tests/server/rpc/rpc_house.h"

namespace traind {
namespace {

using M = v1::CoordinatorMessage;

v1::AttemptReport TableOf(int64_t attempt) {
  v1::AttemptReport report;
  report.set_attempt(attempt);
  v1::TableReady& table = *report.mutable_table_ready();
  table.set_table("cache/k.table");
  table.set_content_sha256("c0ffee");
  table.set_train_rows(100);
  table.set_test_rows(10);
  table.set_features(2);
  table.set_classes(2);
  return report;
}

v1::AttemptReport FloorOf(int64_t attempt) {
  v1::AttemptReport report;
  report.set_attempt(attempt);
  report.mutable_floor_ready()->set_model("logistic");
  report.mutable_floor_ready()->set_score(0.6);
  return report;
}

v1::AttemptReport EndOf(int64_t attempt) {
  v1::AttemptReport report;
  report.set_attempt(attempt);
  report.mutable_ended()->set_reason(v1::ATTEMPT_END_REASON_COMPLETED);
  return report;
}

TEST(WorkerGatewayTest, AStreamWithoutHelloIsRefused) {
  RpcHouse house;
  const auto stub = v1::WorkerService::NewStub(house.Connect());
  for (const bool empty : {false, true}) {
    grpc::ClientContext context;
    const auto stream = stub->Attach(&context);
    v1::WorkerMessage message;
    if (empty) {
      message.mutable_hello();  // without ids
    } else {
      message.mutable_heartbeat();
    }
    stream->Write(message);
    M answer;
    EXPECT_FALSE(stream->Read(&answer));
    EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  }
}

TEST(WorkerGatewayTest, AWorkerWithAnotherEngineIsRefusedInWords) {
  RpcHouse house;
  const auto stub = v1::WorkerService::NewStub(house.Connect());
  grpc::ClientContext context;
  const auto stream = stub->Attach(&context);
  v1::WorkerMessage message;
  message.mutable_hello()->set_worker_id("w1");
  message.mutable_hello()->set_boot_id("boot-1");
  message.mutable_hello()->set_engine("0.9-old");
  stream->Write(message);
  M answer;
  EXPECT_FALSE(stream->Read(&answer));
  const grpc::Status refused = stream->Finish();
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(refused.error_message(), testing::HasSubstr("engine '0.9-old', this traind has '"));
  EXPECT_TRUE(house.gateway().Workers().empty());
}

TEST(WorkerGatewayTest, AWorkerThatHasHeardOfALaterEpochIsRefused) {
  WorkerGatewayOptions options;
  options.epoch = 3;
  RpcHouse house(options);
  EXPECT_EQ(ScriptedWorker(house, "w1", 1).welcome().epoch(), 3);
  grpc::ClientContext context;
  const auto stub = v1::WorkerService::NewStub(house.Connect());
  const auto stream = stub->Attach(&context);
  v1::WorkerMessage message;
  message.mutable_hello()->set_worker_id("w2");
  message.mutable_hello()->set_boot_id("boot-1");
  message.mutable_hello()->set_engine(kEngineVersion);
  message.mutable_hello()->set_epoch(4);
  stream->Write(message);
  M answer;
  EXPECT_FALSE(stream->Read(&answer));
  const grpc::Status refused = stream->Finish();
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(refused.error_message(), testing::HasSubstr("was succeeded"));
}

TEST(WorkerGatewayTest, AWorkerIsToldBelowWhichFoldersDataLie) {
  WorkerGatewayOptions options;
  options.data_roots = {"/data", "/more"};
  RpcHouse house(options);
  ScriptedWorker worker(house, "w", 1);
  EXPECT_THAT(worker.welcome().data_roots(), testing::ElementsAre("/data", "/more"));
}

TEST(WorkerGatewayTest, AJobGoesToAWorkerAsWhatRemainsOfItsTime) {
  RpcHouse house;
  const std::string id = house.Submit(house.GoodSpec());
  ScriptedWorker worker(house, "w1", 2);
  const v1::StartTask start = worker.Await(M::kStart).start();
  EXPECT_EQ(start.job(), id);
  EXPECT_EQ(start.kind(), v1::StartTask::KIND_PREPARE);
  EXPECT_GT(start.attempt(), 0);
  EXPECT_GT(start.remaining_ms(), 500'000);
  EXPECT_LE(start.remaining_ms(), 600'000);
  EXPECT_EQ(start.spec_json(), house.store().GetJob(id)->spec_json);
  EXPECT_EQ(house.Get(id).state(), v1::JOB_STATE_PLANNING);
}

TEST(WorkerGatewayTest, FactsAreAcknowledgedWhenTheyAreStored) {
  RpcHouse house;
  const std::string id = house.Submit(house.GoodSpec());
  ScriptedWorker worker(house, "w1", 2);
  const int64_t attempt = worker.Await(M::kStart).start().attempt();
  worker.Report(1, TableOf(attempt));
  EXPECT_EQ(worker.Await(M::kAck).ack().sequence(), 1);
  EXPECT_EQ(house.store().GetJob(id)->table.train_rows, 100);
  worker.Report(2, FloorOf(attempt));
  worker.Report(3, EndOf(attempt));
  // One Ack may cover several.
  int64_t acknowledged = 0;
  while (acknowledged < 3) acknowledged = worker.Await(M::kAck).ack().sequence();
  EXPECT_EQ(house.store().GetJob(id)->floor_model, "logistic");
}

TEST(WorkerGatewayTest, FactsThatItDoesNotKnowAreAcknowledgedInTheirTurn) {
  RpcHouse house;
  const std::string id = house.Submit(house.GoodSpec());
  ScriptedWorker worker(house, "w1", 2);
  const int64_t attempt = worker.Await(M::kStart).start().attempt();
  // A newer Worker's: another kind of report, another kind of message.
  v1::AttemptReport report;
  report.set_attempt(attempt);
  worker.Report(1, report);
  EXPECT_EQ(worker.Await(M::kAck).ack().sequence(), 1);
  v1::WorkerMessage message;
  message.set_sequence(2);
  worker.Send(message);
  EXPECT_EQ(worker.Await(M::kAck).ack().sequence(), 2);
  // And one that leaves its folder.
  v1::AttemptReport outside = TableOf(attempt);
  outside.mutable_table_ready()->set_table("../k.table");
  worker.Report(3, outside);
  EXPECT_EQ(worker.Await(M::kAck).ack().sequence(), 3);
  EXPECT_EQ(house.store().GetJob(id)->table.table, "");
  EXPECT_EQ(house.Get(id).state(), v1::JOB_STATE_PLANNING);
}

TEST(WorkerGatewayTest, FoldsAreStartedOnTheSlotsAndShownThere) {
  RpcHouse house;
  const std::string id = house.Submit(house.GoodSpec());
  ScriptedWorker worker(house, "w1", 2);
  const int64_t prepare = worker.Await(M::kStart).start().attempt();
  worker.Report(1, TableOf(prepare));
  const v1::StartTask start = worker.Await(M::kStart).start();
  EXPECT_EQ(start.kind(), v1::StartTask::KIND_TRAIN);
  EXPECT_EQ(start.table(), "cache/k.table");
  EXPECT_EQ(start.world_size(), 1);
  EXPECT_EQ(start.slots_size(), 1);
  EXPECT_EQ(start.epochs(), 20);
  EXPECT_EQ(start.publish().spec_folds(), 2);
  EXPECT_EQ(start.publish().metric(), "accuracy");
  grpc::ClientContext context;
  v1::ListWorkersReply workers;
  ASSERT_TRUE(house.client().ListWorkers(&context, {}, &workers).ok());
  ASSERT_EQ(workers.workers_size(), 1);
  EXPECT_TRUE(workers.workers(0).connected());
  EXPECT_EQ(workers.workers(0).pid(), 42);
  ASSERT_EQ(workers.workers(0).slots_size(), 2);
  const v1::SlotInfo& slot = workers.workers(0).slots(start.slots(0));
  EXPECT_EQ(slot.job(), id);
  EXPECT_EQ(slot.task(), absl::StrCat("fold-", start.fold()));
  EXPECT_EQ(slot.attempt(), start.attempt());
}

v1::ListWorkersReply List(RpcHouse& house) {
  grpc::ClientContext context;
  v1::ListWorkersReply workers;
  EXPECT_TRUE(house.client().ListWorkers(&context, {}, &workers).ok());
  return workers;
}

// Polls until there is one Worker of that mode, or (none) there is none.
testing::AssertionResult Comes(RpcHouse& house, v1::WorkerMode mode, bool none = false) {
  for (int i = 0; i < 500; ++i) {
    const v1::ListWorkersReply all = List(house);
    if (none ? all.workers().empty() : all.workers_size() == 1 && all.workers(0).mode() == mode) {
      return testing::AssertionSuccess();
    }
    absl::SleepFor(absl::Milliseconds(10));
  }
  return testing::AssertionFailure() << List(house).ShortDebugString();
}

TEST(WorkerGatewayTest, AWorkerIsCordonedAndWhoListsItSeesThat) {
  RpcHouse house;
  ScriptedWorker worker(house, "w1", 1);
  ASSERT_TRUE(Comes(house, v1::WORKER_MODE_UNSPECIFIED));
  v1::UpdateWorkerRequest request;
  request.set_id("w1");
  request.set_mode(v1::WORKER_MODE_DRAINING);
  request.mutable_grace()->set_seconds(60);
  grpc::ClientContext context;
  v1::WorkerInfo info;
  ASSERT_TRUE(house.client().UpdateWorker(&context, request, &info).ok());
  EXPECT_EQ(info.mode(), v1::WORKER_MODE_DRAINING);
  EXPECT_GT(info.drain_at().seconds(), 0);
  EXPECT_TRUE(info.connected());
  EXPECT_EQ(List(house).workers(0).drain_at().seconds(), info.drain_at().seconds());
  for (const auto& [mode, seconds] : std::vector<std::pair<v1::WorkerMode, int64_t>>{
           {v1::WORKER_MODE_LEAVING, 0},
           {v1::WORKER_MODE_CORDONED, 5},
           {v1::WORKER_MODE_DRAINING, -1},
           {v1::WORKER_MODE_DRAINING, int64_t{1} << 60}}) {
    request.clear_grace();
    if (seconds != 0) request.mutable_grace()->set_seconds(seconds);
    request.set_mode(mode);
    grpc::ClientContext again;
    EXPECT_EQ(house.client().UpdateWorker(&again, request, &info).error_code(),
              grpc::StatusCode::INVALID_ARGUMENT)
        << mode << " " << seconds;
  }
}

TEST(WorkerGatewayTest, AWorkerThatHasLeftIsNotListed) {
  RpcHouse house;
  {
    ScriptedWorker worker(house, "w1", 1);
    ASSERT_TRUE(Comes(house, v1::WORKER_MODE_UNSPECIFIED));
    v1::WorkerMessage message;
    message.mutable_heartbeat()->set_leaving(true);
    worker.Send(message);
    ASSERT_TRUE(Comes(house, v1::WORKER_MODE_LEAVING));
  }
  EXPECT_TRUE(Comes(house, v1::WORKER_MODE_UNSPECIFIED, /*none=*/true));
}

TEST(WorkerGatewayTest, AFactOfAnAttemptThatIsNotCurrentIsAborted) {
  RpcHouse house;
  ScriptedWorker worker(house, "w1", 1);
  worker.Report(5, TableOf(4711));
  const v1::StopAttempt stop = worker.Await(M::kStop).stop();
  EXPECT_EQ(stop.attempt(), 4711);
  EXPECT_EQ(stop.mode(), v1::StopAttempt::ABORT);
}

TEST(WorkerGatewayTest, ACancelledJobsRanksAreKilled) {
  RpcHouse house;
  const std::string id = house.Submit(house.GoodSpec());
  ScriptedWorker worker(house, "w1", 1);
  const int64_t attempt = worker.Await(M::kStart).start().attempt();
  grpc::ClientContext context;
  v1::CancelJobRequest request;
  request.set_id(id);
  v1::Job job;
  ASSERT_TRUE(house.client().CancelJob(&context, request, &job).ok());
  EXPECT_EQ(worker.Await(M::kStop).stop().attempt(), attempt);
}

TEST(WorkerGatewayTest, ASecondStreamOfAWorkerEndsTheFirst) {
  RpcHouse house;
  ScriptedWorker first(house, "w1", 1);
  ScriptedWorker second(house, "w1", 1);
  EXPECT_FALSE(first.AwaitEnd().ok());
  // The end of the first does not hide the second.
  house.Submit(house.GoodSpec());
  EXPECT_GT(second.Await(M::kStart).start().attempt(), 0);
}

TEST(WorkerGatewayTest, AnotherProcessWithTheIdOfALiveWorkerIsRefused) {
  RpcHouse house;
  ScriptedWorker first(house, "w1", 1);
  const auto stub = v1::WorkerService::NewStub(house.Connect());
  grpc::ClientContext context;
  const auto stream = stub->Attach(&context);
  v1::WorkerMessage message;
  message.mutable_hello()->set_worker_id("w1");
  message.mutable_hello()->set_boot_id("another process");
  message.mutable_hello()->set_engine(kEngineVersion);
  stream->Write(message);
  M answer;
  EXPECT_FALSE(stream->Read(&answer));
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::ALREADY_EXISTS);
  house.Submit(house.GoodSpec());
  EXPECT_GT(first.Await(M::kStart).start().attempt(), 0);
}

TEST(WorkerGatewayTest, AfterAFailedCommitWorkersComeBackAndSayItAgain) {
  RpcHouse house;
  const std::string id = house.Submit(house.GoodSpec());
  int64_t attempt = 0;
  {
    ScriptedWorker worker(house, "w1", 1);
    attempt = worker.Await(M::kStart).start().attempt();
    house.store().FailCommits(absl::ResourceExhaustedError("full"));
    worker.Report(1, TableOf(attempt));
    EXPECT_FALSE(worker.AwaitEnd().ok());
    house.store().FailCommits(absl::OkStatus());
  }
  ScriptedWorker again(house, "w1", 1, {attempt});
  again.Report(1, TableOf(attempt));
  EXPECT_EQ(again.Await(M::kAck).ack().sequence(), 1);
  EXPECT_EQ(house.store().GetJob(id)->table.train_rows, 100);
}

TEST(WorkerGatewayTest, ShutdownReachesTheWorkers) {
  RpcHouse house;
  ScriptedWorker worker(house, "w1", 1);
  house.gateway().Send(ShutdownCommand{"w1"});
  house.loop().Post(ShutdownRequested{});
  EXPECT_GT(worker.Await(M::kShutdown).shutdown().grace_ms(), 0);
  v1::SubmitReply reply;
  EXPECT_EQ(house.Submit(house.GoodSpec(), "", &reply).error_code(), grpc::StatusCode::UNAVAILABLE);
}

TEST(WorkerGatewayTest, MetricsOfAnEpochCanBeReadAndFollowed) {
  RpcHouse house;
  const std::string id = house.Submit(house.GoodSpec());
  ScriptedWorker worker(house, "w1", 1);
  worker.Report(1, TableOf(worker.Await(M::kStart).start().attempt()));
  const v1::StartTask train = worker.Await(M::kStart).start();
  grpc::ClientContext context;
  v1::GetMetricsRequest request;
  request.set_id(id);
  request.set_follow(true);
  const auto stream = house.client().GetMetrics(&context, request);
  v1::AttemptReport report;
  report.set_attempt(train.attempt());
  v1::EpochReport& epoch = *report.mutable_epoch();
  epoch.set_epoch(1);
  epoch.set_step(10);
  epoch.set_train_loss(0.5);
  epoch.set_val_metric(0.75);
  worker.Report(2, report);
  v1::MetricsReply reply;
  bool seen = false;
  while (!seen && stream->Read(&reply)) {
    for (const v1::MetricPoint& point : reply.points()) {
      if (point.name() != "val_metric") continue;
      seen = true;
      EXPECT_EQ(point.value(), 0.75);
      EXPECT_EQ(point.step(), 10);
      EXPECT_EQ(point.fold(), train.fold());
      EXPECT_EQ(point.attempt(), train.attempt());
    }
  }
  EXPECT_TRUE(seen);
  grpc::ClientContext cancel;
  v1::CancelJobRequest cancel_request;
  cancel_request.set_id(id);
  v1::Job job;
  ASSERT_TRUE(house.client().CancelJob(&cancel, cancel_request, &job).ok());
  while (stream->Read(&reply)) {
  }
  EXPECT_TRUE(reply.end());
  EXPECT_TRUE(stream->Finish().ok());
}

// Asks in a thread of its own.
class Question {
 public:
  Question(RpcHouse& house, const std::string& worker) {
    thread_ = std::thread([this, &house, worker] {
      v1::AskRows ask;
      ask.set_attempt(7);
      answer_ = house.gateway().Ask(worker, ask, absl::Seconds(30));
    });
  }
  absl::StatusOr<v1::PredictRowsReply> Answer() {
    thread_.join();
    return answer_;
  }

 private:
  absl::StatusOr<v1::PredictRowsReply> answer_;
  std::thread thread_;
};

TEST(WorkerGatewayTest, AnAnswerInPartsIsJoined) {
  RpcHouse house;
  ScriptedWorker worker(house, "w1", 1);
  Question question(house, "w1");
  const auto asked = worker.Await(v1::CoordinatorMessage::kRows);
  for (int part = 0; part < 3; ++part) {
    v1::WorkerMessage message;
    message.mutable_rows()->set_request(asked.rows().request());
    message.mutable_rows()->set_more(part < 2);
    v1::PredictRowsReply& reply = *message.mutable_rows()->mutable_reply();
    reply.add_targets("kind");
    reply.add_rows()->add_values(absl::StrCat(part));
    worker.Send(message);
  }
  const auto answer = question.Answer();
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->targets_size(), 1);
  ASSERT_EQ(answer->rows_size(), 3);
  for (int row = 0; row < 3; ++row) EXPECT_EQ(answer->rows(row).values(0), absl::StrCat(row));
}

TEST(WorkerGatewayTest, QuestionsOfAWorkerThatLeavesAreGivenBackAtOnce) {
  RpcHouse house;
  ScriptedWorker worker(house, "w1", 1);
  Question question(house, "w1");
  worker.Await(v1::CoordinatorMessage::kRows);
  const absl::Duration begin = SystemClock().MonotonicNow();
  worker.Leave();
  EXPECT_TRUE(absl::IsAborted(question.Answer().status()));
  EXPECT_LT(SystemClock().MonotonicNow() - begin, absl::Seconds(10));
}

// The stream before may have been dead for a while, and what was sent over it is lost.
TEST(WorkerGatewayTest, QuestionsOfAWorkerThatAttachesAnewAreGivenBackAtOnce) {
  RpcHouse house;
  ScriptedWorker before(house, "w1", 1);
  Question question(house, "w1");
  before.Await(v1::CoordinatorMessage::kRows);
  const absl::Duration begin = SystemClock().MonotonicNow();
  ScriptedWorker anew(house, "w1", 1);
  EXPECT_TRUE(absl::IsAborted(question.Answer().status()));
  EXPECT_LT(SystemClock().MonotonicNow() - begin, absl::Seconds(10));
}

}  // namespace
}  // namespace traind
