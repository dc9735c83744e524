#include "tests/server/rpc/rpc_house.h"

#include <absl/strings/str_cat.h>
#include <absl/time/clock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <utility>

#include "common/base/clock.h"
#include "common/base/durable_file.h"
#include "common/base/engine_version.h"

namespace traind {

bool Eventually(const std::function<bool()>& holds) {
  const absl::Time end = absl::Now() + absl::Seconds(20);
  while (!holds()) {
    if (absl::Now() > end) return false;
    absl::SleepFor(absl::Milliseconds(5));
  }
  return true;
}

RpcHouse::RpcHouse(WorkerGatewayOptions workers, double submits_per_s, CoreOptions core) {
  std::string folder = absl::StrCat(testing::TempDir(), "/house.XXXXXX");
  EXPECT_NE(mkdtemp(folder.data()), nullptr);
  char* const real = realpath(folder.c_str(), nullptr);
  folder_ = real;
  free(real);
  EXPECT_EQ(WriteFileDurably(absl::StrCat(folder_, "/train.csv"), "a,b,kind\n1,2,x\n3,4,y\n"),
            absl::OkStatus());
  EXPECT_EQ(WriteFileDurably(absl::StrCat(folder_, "/test.csv"), "a,b\n1,2\n"), absl::OkStatus());

  LoopOptions options;
  options.state_dir = folder_;
  options.core = core;
  loop_ = ControlLoop::Create(options, &store_, &SystemClock()).value();
  intake_ = std::make_unique<Intake>(std::vector<std::string>{folder_}, std::set<std::string>(),
                                     /*programs=*/true, std::set<std::string>(),
                                     absl::StrCat(folder_, "/uploads"));
  gateway_ = std::make_unique<GrpcWorkerGateway>(
      std::move(workers), &SystemClock(), [this](Event event) { loop_->Post(std::move(event)); },
      [this](const std::string& job, AckCommand ack) { loop_->AdoptPrediction(job, ack); });
  CollectorOptions retention;
  retention.state_dir = folder_;
  collector_ = std::make_unique<Collector>(retention, loop_.get(), &store_);
  calls_ = std::make_unique<TrainingCalls>(folder_, loop_.get(), &store_, intake_.get(),
                                           gateway_.get(), collector_.get(), submits_per_s);
  service_ = std::make_unique<TrainingService>(calls_.get());
  loop_->Start(gateway_.get());
  server_ = GrpcServer::Listen("127.0.0.1:0", {service_.get(), gateway_.get()},
                               {v1::TrainingService::service_full_name()})
                .value();
  client_ = v1::TrainingService::NewStub(Connect());
}

RpcHouse::~RpcHouse() {
  loop_->views().Close();
  server_->Stop(absl::ZeroDuration());
  loop_->Stop();
  server_.reset();
}

std::shared_ptr<grpc::Channel> RpcHouse::Connect() const {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);  // else equal channels share one
  return grpc::CreateCustomChannel(absl::StrCat("127.0.0.1:", server_->port()),
                                   grpc::InsecureChannelCredentials(), arguments);
}

v1::JobSpec RpcHouse::GoodSpec(const std::string& name) const {
  v1::JobSpec spec;
  spec.set_api("v1");
  spec.set_name(name);
  spec.mutable_task()->set_type("classification");
  spec.mutable_data()->set_train(absl::StrCat(folder_, "/train.csv"));
  spec.mutable_data()->set_test(absl::StrCat(folder_, "/test.csv"));
  spec.mutable_data()->set_target("kind");
  spec.mutable_data()->set_folds(2);
  spec.mutable_model()->mutable_mlp();
  spec.mutable_budget()->mutable_time()->set_seconds(600);
  return spec;
}

grpc::Status RpcHouse::Submit(const v1::JobSpec& spec, const std::string& request_id,
                              v1::SubmitReply* reply) {
  grpc::ClientContext context;
  v1::SubmitRequest request;
  *request.mutable_spec() = spec;
  request.set_request_id(request_id);
  return client_->Submit(&context, request, reply);
}

std::string RpcHouse::Submit(const v1::JobSpec& spec, const std::string& request_id) {
  v1::SubmitReply reply;
  const grpc::Status status = Submit(spec, request_id, &reply);
  EXPECT_TRUE(status.ok()) << status.error_message();
  return reply.job().id();
}

v1::Job RpcHouse::Get(const std::string& id) {
  grpc::ClientContext context;
  v1::GetJobRequest request;
  request.set_id(id);
  v1::Job job;
  const grpc::Status status = client_->GetJob(&context, request, &job);
  EXPECT_TRUE(status.ok()) << status.error_message();
  return job;
}

ScriptedWorker::ScriptedWorker(const RpcHouse& house, const std::string& id, int slots,
                               std::vector<int64_t> running, const std::string& boot)
    : stub_(v1::WorkerService::NewStub(house.Connect())) {
  context_.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(60));
  stream_ = stub_->Attach(&context_);
  v1::WorkerMessage message;
  v1::Hello& hello = *message.mutable_hello();
  hello.set_worker_id(id);
  hello.set_boot_id(boot);
  hello.set_engine(kEngineVersion);
  hello.set_hostname("here");
  hello.set_pid(42);
  for (int i = 0; i < slots; ++i) {
    v1::SlotInfo* slot = hello.add_slots();
    slot->set_index(i);
    slot->set_device("cpu");
  }
  hello.mutable_running_attempts()->Add(running.begin(), running.end());
  Send(message);
  welcome_ = Await(v1::CoordinatorMessage::kWelcome).welcome();
}

ScriptedWorker::~ScriptedWorker() {
  if (!over_) Leave();
}

v1::CoordinatorMessage ScriptedWorker::Await(v1::CoordinatorMessage::MessageCase kind) {
  v1::CoordinatorMessage message;
  while (stream_->Read(&message)) {
    if (message.message_case() == kind) return message;
  }
  ADD_FAILURE() << "the stream ended before a message of kind " << kind;
  return {};
}

void ScriptedWorker::Send(const v1::WorkerMessage& message) { stream_->Write(message); }

void ScriptedWorker::Report(int64_t sequence, v1::AttemptReport report) {
  v1::WorkerMessage message;
  message.set_sequence(sequence);
  *message.mutable_report() = std::move(report);
  Send(message);
}

grpc::Status ScriptedWorker::Leave() {
  stream_->WritesDone();
  return AwaitEnd();
}

grpc::Status ScriptedWorker::AwaitEnd() {
  v1::CoordinatorMessage message;
  while (stream_->Read(&message)) {
  }
  over_ = true;
  return stream_->Finish();
}

}  // namespace traind
