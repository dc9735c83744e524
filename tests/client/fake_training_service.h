// A TrainingService in the test's process, controlled by the test.
#pragma once

#include <absl/synchronization/mutex.h>
#include <grpcpp/grpcpp.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "proto/training_service.grpc.pb.h"

namespace traind {

// Answers with the values of its members, which are set before the server starts or guard
// themselves.
// Threads: called on gRPC's threads.
class FakeTrainingService final : public v1::TrainingService::Service {
 public:
  using Context = grpc::ServerContext;
  std::function<grpc::Status(const v1::SubmitRequest&, v1::SubmitReply*)> on_submit;
  std::function<grpc::Status(const v1::GetJobRequest&, v1::Job*)> on_get;
  std::function<grpc::Status(Context*, const v1::WatchJobRequest&,
                             const std::function<bool(const v1::Job&)>& send)>
      on_watch;
  std::function<grpc::Status(const v1::GetMetricsRequest&,
                             const std::function<bool(const v1::MetricsReply&)>& send)>
      on_metrics;
  std::function<grpc::Status(const v1::GetEventsRequest&,
                             const std::function<bool(const v1::EventsReply&)>& send)>
      on_events;
  std::function<grpc::Status(const v1::ListJobsRequest&, v1::ListJobsReply*)> on_list;
  std::function<grpc::Status(const v1::PlanRequest&, v1::PlanReply*)> on_plan;
  std::function<grpc::Status(const v1::GetLogsRequest&,
                             const std::function<bool(const v1::LogsReply&)>& send)>
      on_logs;
  std::function<grpc::Status(const v1::GetSpecRequest&, v1::GetSpecReply*)> on_spec;
  v1::UpdateJobRequest updated;  // the last one
  std::function<grpc::Status(const v1::ProposeTrialRequest&, v1::ProposeTrialReply*)> on_propose;
  std::function<grpc::Status(const v1::UploadRequest&, v1::UploadReply*)> on_upload;
  // Called with the name before an artifact is sent.
  std::function<grpc::Status(const std::string&)> on_fetch;
  std::string artifact = "row,y\n0,1\n";
  std::string artifact_sha256;
  v1::ListWorkersReply workers;
  std::function<void()> on_list_workers;
  v1::CollectGarbageReply garbage;
  bool dry_run = false;  // of the last call

  grpc::Status Submit(Context*, const v1::SubmitRequest* request, v1::SubmitReply* reply) override {
    return on_submit ? on_submit(*request, reply) : Unset();
  }
  grpc::Status Plan(Context*, const v1::PlanRequest* request, v1::PlanReply* reply) override {
    return on_plan ? on_plan(*request, reply) : Unset();
  }
  grpc::Status GetJob(Context*, const v1::GetJobRequest* request, v1::Job* job) override {
    return on_get ? on_get(*request, job) : Unset();
  }
  grpc::Status ListJobs(Context*, const v1::ListJobsRequest* request,
                        v1::ListJobsReply* reply) override {
    return on_list ? on_list(*request, reply) : Unset();
  }
  grpc::Status WatchJob(Context* context, const v1::WatchJobRequest* request,
                        grpc::ServerWriter<v1::Job>* writer) override {
    if (!on_watch) return Unset();
    return on_watch(context, *request, [&](const v1::Job& job) { return writer->Write(job); });
  }
  grpc::Status FinishJob(Context*, const v1::FinishJobRequest* request, v1::Job* job) override {
    return Answer(request->id(), job);
  }
  grpc::Status PauseJob(Context*, const v1::PauseJobRequest* request, v1::Job* job) override {
    return Answer(request->id(), job);
  }
  grpc::Status ResumeJob(Context*, const v1::ResumeJobRequest* request, v1::Job* job) override {
    return Answer(request->id(), job);
  }
  grpc::Status UpdateJob(Context*, const v1::UpdateJobRequest* request, v1::Job* job) override {
    updated = *request;
    return Answer(request->id(), job);
  }
  grpc::Status DeleteJob(Context*, const v1::DeleteJobRequest* request,
                         v1::DeleteJobReply* reply) override {
    v1::Job job;
    v1::GetJobRequest get;
    get.set_id(request->id());
    const grpc::Status found = on_get ? on_get(get, &job) : Unset();
    reply->set_id(job.id());
    reply->set_bytes(3 << 20);
    return found;
  }
  grpc::Status PinJob(Context*, const v1::PinJobRequest* request, v1::Job* job) override {
    const grpc::Status found = Answer(request->id(), job);
    job->set_pinned(request->pinned());
    return found;
  }
  grpc::Status CollectGarbage(Context*, const v1::CollectGarbageRequest* request,
                              v1::CollectGarbageReply* reply) override {
    dry_run = request->dry_run();
    *reply = garbage;
    return grpc::Status::OK;
  }
  grpc::Status ProposeTrial(Context*, const v1::ProposeTrialRequest* request,
                            v1::ProposeTrialReply* reply) override {
    return on_propose ? on_propose(*request, reply) : Unset();
  }
  grpc::Status CancelJob(Context*, const v1::CancelJobRequest* request, v1::Job* job) override {
    return Answer(request->id(), job);
  }
  grpc::Status GetEvents(Context*, const v1::GetEventsRequest* request,
                         grpc::ServerWriter<v1::EventsReply>* writer) override {
    if (!on_events) return Unset();
    return on_events(*request, [&](const v1::EventsReply& reply) { return writer->Write(reply); });
  }
  grpc::Status GetMetrics(Context*, const v1::GetMetricsRequest* request,
                          grpc::ServerWriter<v1::MetricsReply>* writer) override {
    if (!on_metrics) return Unset();
    return on_metrics(*request,
                      [&](const v1::MetricsReply& reply) { return writer->Write(reply); });
  }
  grpc::Status GetLogs(Context*, const v1::GetLogsRequest* request,
                       grpc::ServerWriter<v1::LogsReply>* writer) override {
    if (!on_logs) return Unset();
    return on_logs(*request, [&](const v1::LogsReply& reply) { return writer->Write(reply); });
  }
  grpc::Status GetSpec(Context*, const v1::GetSpecRequest* request,
                       v1::GetSpecReply* reply) override {
    return on_spec ? on_spec(*request, reply) : Unset();
  }
  grpc::Status Upload(Context*, const v1::UploadRequest* request, v1::UploadReply* reply) override {
    return on_upload ? on_upload(*request, reply) : Unset();
  }
  grpc::Status FetchArtifact(Context*, const v1::FetchArtifactRequest* request,
                             grpc::ServerWriter<v1::FetchArtifactReply>* writer) override {
    if (on_fetch) {
      if (grpc::Status status = on_fetch(request->name()); !status.ok()) return status;
    }
    v1::FetchArtifactReply reply;
    reply.set_sha256(artifact_sha256);
    reply.set_bytes(static_cast<int64_t>(artifact.size()));
    // The bytes come in two messages.
    const size_t half = artifact.size() / 2;
    reply.set_data(artifact.substr(0, half));
    writer->Write(reply);
    reply.Clear();
    reply.set_data(artifact.substr(half));
    writer->Write(reply);
    return grpc::Status::OK;
  }
  grpc::Status UpdateWorker(Context*, const v1::UpdateWorkerRequest* request,
                            v1::WorkerInfo* reply) override {
    for (v1::WorkerInfo& worker : *workers.mutable_workers()) {
      if (worker.id() != request->id()) continue;
      worker.set_mode(request->mode());
      worker.clear_drain_at();
      if (request->mode() == v1::WORKER_MODE_DRAINING) {
        worker.mutable_drain_at()->set_seconds(4'000'000'000 + request->grace().seconds());
      }
      *reply = worker;
      return grpc::Status::OK;
    }
    return {grpc::StatusCode::NOT_FOUND, "no worker has the id " + request->id()};
  }
  grpc::Status ListWorkers(Context*, const v1::ListWorkersRequest*,
                           v1::ListWorkersReply* reply) override {
    if (on_list_workers) on_list_workers();
    *reply = workers;
    return grpc::Status::OK;
  }

 private:
  // Answers like GetJob.
  grpc::Status Answer(const std::string& id, v1::Job* job) {
    v1::GetJobRequest get;
    get.set_id(id);
    return on_get ? on_get(get, job) : Unset();
  }
  static grpc::Status Unset() {
    return grpc::Status(grpc::StatusCode::UNIMPLEMENTED, "the test does not expect this");
  }
};

// Serves on a free loopback port; after Stop, Start uses the same port again.
class FakeServer {
 public:
  explicit FakeServer(FakeTrainingService& service) : service_(service) { Start(); }
  ~FakeServer() { Stop(); }
  void Start() {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:" + std::to_string(port_),
                             grpc::InsecureServerCredentials(), &port_);
    builder.RegisterService(&service_);
    server_ = builder.BuildAndStart();
  }
  void Stop() {
    if (server_ == nullptr) return;
    server_->Shutdown(std::chrono::system_clock::now());
    server_.reset();
  }
  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }

 private:
  FakeTrainingService& service_;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace traind
