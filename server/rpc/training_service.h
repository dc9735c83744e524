// The clients' side of traind over gRPC: TrainingService (proto/training_service.proto).
#pragma once

#include <absl/base/thread_annotations.h>
#include <absl/synchronization/mutex.h>
#include <grpcpp/grpcpp.h>

#include <map>
#include <string>

#include "proto/training_service.grpc.pb.h"
#include "server/loop/figures.h"
#include "server/rpc/caller_of.h"
#include "server/rpc/training_calls.h"

namespace traind {

using AdminMethods = v1::TrainingService::WithCallbackMethod_ListQuotas<
    v1::TrainingService::WithCallbackMethod_SetQuota<
        v1::TrainingService::WithCallbackMethod_RemoveQuota<
            v1::TrainingService::WithCallbackMethod_UpdateWorker<v1::TrainingService::Service>>>>;
using SubmitMethods = v1::TrainingService::WithCallbackMethod_Submit<
    v1::TrainingService::WithCallbackMethod_SubmitBatch<
        v1::TrainingService::WithCallbackMethod_ProposeTrial<
            v1::TrainingService::WithCallbackMethod_Predict<AdminMethods>>>>;

// Brings calls from gRPC to TrainingCalls. Those that wait for the control loop's commit hold no
// thread meanwhile; the others have a thread each.
// Threads: safe. Ownership: `calls` outlives the service.
class TrainingService final
    : public v1::TrainingService::WithCallbackMethod_FinishJob<
          v1::TrainingService::WithCallbackMethod_CancelJob<
              v1::TrainingService::WithCallbackMethod_PauseJob<
                  v1::TrainingService::WithCallbackMethod_ResumeJob<
                      v1::TrainingService::WithCallbackMethod_UpdateJob<SubmitMethods>>>>> {
 public:
  explicit TrainingService(TrainingCalls* calls, CallChecks checks = {})
      : calls_(calls), checks_(checks) {}

  // Returns the figures of the calls that are no streams.
  CallFigures::Counts figures() const { return figures_.counts(); }

  grpc::ServerUnaryReactor* Submit(grpc::CallbackServerContext* context,
                                   const v1::SubmitRequest* request,
                                   v1::SubmitReply* reply) override;
  grpc::ServerUnaryReactor* SubmitBatch(grpc::CallbackServerContext* context,
                                        const v1::SubmitBatchRequest* request,
                                        v1::SubmitBatchReply* reply) override;
  grpc::ServerUnaryReactor* FinishJob(grpc::CallbackServerContext* context,
                                      const v1::FinishJobRequest* request, v1::Job* reply) override;
  grpc::ServerUnaryReactor* CancelJob(grpc::CallbackServerContext* context,
                                      const v1::CancelJobRequest* request, v1::Job* reply) override;
  grpc::ServerUnaryReactor* PauseJob(grpc::CallbackServerContext* context,
                                     const v1::PauseJobRequest* request, v1::Job* reply) override;
  grpc::ServerUnaryReactor* ResumeJob(grpc::CallbackServerContext* context,
                                      const v1::ResumeJobRequest* request, v1::Job* reply) override;
  grpc::ServerUnaryReactor* UpdateJob(grpc::CallbackServerContext* context,
                                      const v1::UpdateJobRequest* request, v1::Job* reply) override;
  grpc::ServerUnaryReactor* ProposeTrial(grpc::CallbackServerContext* context,
                                         const v1::ProposeTrialRequest* request,
                                         v1::ProposeTrialReply* reply) override;
  grpc::ServerUnaryReactor* ListQuotas(grpc::CallbackServerContext* context,
                                       const v1::ListQuotasRequest* request,
                                       v1::ListQuotasReply* reply) override;
  grpc::ServerUnaryReactor* SetQuota(grpc::CallbackServerContext* context,
                                     const v1::SetQuotaRequest* request,
                                     v1::QuotaState* reply) override;
  grpc::ServerUnaryReactor* RemoveQuota(grpc::CallbackServerContext* context,
                                        const v1::RemoveQuotaRequest* request,
                                        v1::RemoveQuotaReply* reply) override;
  grpc::ServerUnaryReactor* UpdateWorker(grpc::CallbackServerContext* context,
                                         const v1::UpdateWorkerRequest* request,
                                         v1::WorkerInfo* reply) override;
  grpc::ServerUnaryReactor* Predict(grpc::CallbackServerContext* context,
                                    const v1::PredictRequest* request,
                                    v1::SubmitReply* reply) override;

  grpc::Status PredictRows(grpc::ServerContext* context, const v1::PredictRowsRequest* request,
                           v1::PredictRowsReply* reply) override;
  grpc::Status Plan(grpc::ServerContext* context, const v1::PlanRequest* request,
                    v1::PlanReply* reply) override;
  grpc::Status Upload(grpc::ServerContext* context, const v1::UploadRequest* request,
                      v1::UploadReply* reply) override;
  grpc::Status UploadParts(grpc::ServerContext* context,
                           grpc::ServerReader<v1::UploadRequest>* parts,
                           v1::UploadReply* reply) override;
  grpc::Status GetJob(grpc::ServerContext* context, const v1::GetJobRequest* request,
                      v1::Job* reply) override;
  grpc::Status ListJobs(grpc::ServerContext* context, const v1::ListJobsRequest* request,
                        v1::ListJobsReply* reply) override;
  grpc::Status ListTrials(grpc::ServerContext* context, const v1::ListTrialsRequest* request,
                          v1::ListTrialsReply* reply) override;
  grpc::Status WatchJob(grpc::ServerContext* context, const v1::WatchJobRequest* request,
                        grpc::ServerWriter<v1::Job>* writer) override;
  grpc::Status GetMetrics(grpc::ServerContext* context, const v1::GetMetricsRequest* request,
                          grpc::ServerWriter<v1::MetricsReply>* writer) override;
  grpc::Status GetEvents(grpc::ServerContext* context, const v1::GetEventsRequest* request,
                         grpc::ServerWriter<v1::EventsReply>* writer) override;
  grpc::Status FetchArtifact(grpc::ServerContext* context, const v1::FetchArtifactRequest* request,
                             grpc::ServerWriter<v1::FetchArtifactReply>* writer) override;
  grpc::Status GetLogs(grpc::ServerContext* context, const v1::GetLogsRequest* request,
                       grpc::ServerWriter<v1::LogsReply>* writer) override;
  grpc::Status GetSpec(grpc::ServerContext* context, const v1::GetSpecRequest* request,
                       v1::GetSpecReply* reply) override;
  grpc::Status DeleteJob(grpc::ServerContext* context, const v1::DeleteJobRequest* request,
                         v1::DeleteJobReply* reply) override;
  grpc::Status PinJob(grpc::ServerContext* context, const v1::PinJobRequest* request,
                      v1::Job* reply) override;
  grpc::Status CollectGarbage(grpc::ServerContext* context,
                              const v1::CollectGarbageRequest* request,
                              v1::CollectGarbageReply* reply) override;
  grpc::Status ListWorkers(grpc::ServerContext* context, const v1::ListWorkersRequest* request,
                           v1::ListWorkersReply* reply) override;

 private:
  class OpenStream;

  // call: (const Caller&, Done).
  template <typename Call>
  grpc::ServerUnaryReactor* Begin(const char* method, grpc::CallbackServerContext* context,
                                  const google::protobuf::Message& request,
                                  const google::protobuf::Message& reply, const Call& call);
  // Does a call, counts and records it. call: (const Caller&).
  template <typename Call>
  grpc::Status Count(const char* method, grpc::ServerContext* context,
                     const google::protobuf::Message& request,
                     const google::protobuf::Message& reply, const Call& call);
  template <typename Request, typename Reply>
  grpc::Status Stream(grpc::ServerContext* context,
                      absl::Status (TrainingCalls::*call)(const Request&, const ReplySink<Reply>&),
                      const Request& request, grpc::ServerWriter<Reply>* writer);
  void Add(const char* method, absl::Duration begin, const absl::Status& status);
  void Record(const char* method, const Caller& caller, const google::protobuf::Message& request,
              const google::protobuf::Message& reply, const absl::Status& status);

  CallFigures figures_;
  TrainingCalls* const calls_;
  const CallChecks checks_;
  absl::Mutex streams_mutex_;
  // Open streams, which hold a thread each: all of them, and those of each connection.
  int open_streams_ ABSL_GUARDED_BY(streams_mutex_) = 0;
  std::map<std::string, int> streams_of_ ABSL_GUARDED_BY(streams_mutex_);
};

}  // namespace traind
