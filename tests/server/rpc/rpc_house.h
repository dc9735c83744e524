// traind's edges, control loop and core in this process, over a store in memory
// and real gRPC on a free loopback port.
#pragma once

#include <absl/time/time.h>
#include <grpcpp/grpcpp.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "proto/training_service.grpc.pb.h"
#include "proto/worker_service.grpc.pb.h"
#include "server/intake/intake.h"
#include "server/loop/control_loop.h"
#include "server/rpc/grpc_server.h"
#include "server/rpc/training_service.h"
#include "server/rpc/worker_gateway.h"
#include "server/store/memory_store.h"

namespace traind {

// Polls until `holds`; false after 20 s.
bool Eventually(const std::function<bool()>& holds);

class RpcHouse {
 public:
  // submits_per_s: of each owner; 0: no limit.
  explicit RpcHouse(WorkerGatewayOptions workers = {}, double submits_per_s = 0,
                    CoreOptions core = {});
  ~RpcHouse();

  // A spec on two small files in the data root.
  v1::JobSpec GoodSpec(const std::string& name = "digits") const;
  // Submits it; the Job's id. Fails the test if that is refused.
  std::string Submit(const v1::JobSpec& spec, const std::string& request_id = "");
  grpc::Status Submit(const v1::JobSpec& spec, const std::string& request_id,
                      v1::SubmitReply* reply);
  v1::Job Get(const std::string& id);
  void StopLoop() { loop_->Stop(); }
  // A new channel to the port, with a connection of its own.
  std::shared_ptr<grpc::Channel> Connect() const;

  const std::string& folder() const { return folder_; }  // also the state folder
  v1::TrainingService::Stub& client() { return *client_; }
  MemoryStore& store() { return store_; }
  ControlLoop& loop() { return *loop_; }
  GrpcWorkerGateway& gateway() { return *gateway_; }
  TrainingCalls& calls() { return *calls_; }

 private:
  std::string folder_;
  MemoryStore store_;
  std::unique_ptr<ControlLoop> loop_;
  std::unique_ptr<Intake> intake_;
  std::unique_ptr<GrpcWorkerGateway> gateway_;
  std::unique_ptr<Collector> collector_;
  std::unique_ptr<TrainingCalls> calls_;
  std::unique_ptr<TrainingService> service_;
  std::unique_ptr<GrpcServer> server_;
  std::unique_ptr<v1::TrainingService::Stub> client_;
};

// A Worker as the test scripts it.
class ScriptedWorker {
 public:
  // Attaches, says Hello and takes the Welcome.
  ScriptedWorker(const RpcHouse& house, const std::string& id, int slots,
                 std::vector<int64_t> running = {}, const std::string& boot = "boot-1");
  ~ScriptedWorker();

  const v1::Welcome& welcome() const { return welcome_; }
  // The next message of the kind; others are skipped. Fails the test when the
  // stream ends before.
  v1::CoordinatorMessage Await(v1::CoordinatorMessage::MessageCase kind);
  void Report(int64_t sequence, v1::AttemptReport report);
  void Send(const v1::WorkerMessage& message);
  // Ends the stream from this side; what the server made of it.
  grpc::Status Leave();
  // Reads until the server ends the stream.
  grpc::Status AwaitEnd();

 private:
  std::unique_ptr<v1::WorkerService::Stub> stub_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReaderWriter<v1::WorkerMessage, v1::CoordinatorMessage>> stream_;
  v1::Welcome welcome_;
  bool over_ = false;
};

}  // namespace traind
