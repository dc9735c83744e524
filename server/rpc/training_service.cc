#include "server/rpc/training_service.h"

#include <absl/strings/str_cat.h>

#include <chrono>

#include "common/wire/grpc_status.h"

namespace traind {
namespace {

constexpr int kMaxStreams = 256;
constexpr int kMaxStreamsOfConnection = 64;

absl::Status ManyStreams(int most, absl::string_view whose) {
  return absl::ResourceExhaustedError(absl::StrCat("more than ", most, " streams", whose,
                                                   " are open; end some, or ask with GetJob"));
}

// Starts a call that is answered later, from another thread.
template <typename Request, typename Reply>
grpc::ServerUnaryReactor* Begin(grpc::CallbackServerContext* context, TrainingCalls* calls,
                                void (TrainingCalls::*call)(const Request&, Reply*, Done),
                                const Request* request, Reply* reply) {
  grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
  (calls->*call)(*request, reply,
                 [reactor](const absl::Status& status) { reactor->Finish(ToGrpc(status)); });
  return reactor;
}

template <typename Reply>
ReplySink<Reply> SinkOf(grpc::ServerContext* context, grpc::ServerWriter<Reply>* writer) {
  return {[writer](const Reply& reply) { return writer->Write(reply); },
          [context] { return context->IsCancelled(); }};
}

}  // namespace

// Counts a stream while it is open.
class TrainingService::OpenStream {
 public:
  OpenStream(TrainingService& service, const grpc::ServerContext& context)
      : service_(service), connection_(context.peer()) {
    absl::MutexLock lock(&service_.streams_mutex_);
    if (++service_.streams_of_[connection_] > kMaxStreamsOfConnection) {
      status_ = ManyStreams(kMaxStreamsOfConnection, " of this connection");
    }
    if (++service_.open_streams_ > kMaxStreams) status_ = ManyStreams(kMaxStreams, "");
  }
  ~OpenStream() {
    absl::MutexLock lock(&service_.streams_mutex_);
    --service_.open_streams_;
    const auto mine = service_.streams_of_.find(connection_);
    if (--mine->second == 0) service_.streams_of_.erase(mine);
  }
  OpenStream(const OpenStream&) = delete;
  OpenStream& operator=(const OpenStream&) = delete;
  // ResourceExhausted: the stream must not stay open.
  const absl::Status& status() const { return status_; }

 private:
  TrainingService& service_;
  const std::string connection_;
  absl::Status status_;
};

grpc::ServerUnaryReactor* TrainingService::Submit(grpc::CallbackServerContext* context,
                                                  const v1::SubmitRequest* request,
                                                  v1::SubmitReply* reply) {
  return Begin(context, calls_, &TrainingCalls::Submit, request, reply);
}

grpc::ServerUnaryReactor* TrainingService::FinishJob(grpc::CallbackServerContext* context,
                                                     const v1::FinishJobRequest* request,
                                                     v1::Job* reply) {
  return Begin(context, calls_, &TrainingCalls::FinishJob, request, reply);
}

grpc::ServerUnaryReactor* TrainingService::CancelJob(grpc::CallbackServerContext* context,
                                                     const v1::CancelJobRequest* request,
                                                     v1::Job* reply) {
  return Begin(context, calls_, &TrainingCalls::CancelJob, request, reply);
}

grpc::ServerUnaryReactor* TrainingService::PauseJob(grpc::CallbackServerContext* context,
                                                    const v1::PauseJobRequest* request,
                                                    v1::Job* reply) {
  return Begin(context, calls_, &TrainingCalls::PauseJob, request, reply);
}

grpc::ServerUnaryReactor* TrainingService::ResumeJob(grpc::CallbackServerContext* context,
                                                     const v1::ResumeJobRequest* request,
                                                     v1::Job* reply) {
  return Begin(context, calls_, &TrainingCalls::ResumeJob, request, reply);
}

grpc::ServerUnaryReactor* TrainingService::UpdateJob(grpc::CallbackServerContext* context,
                                                     const v1::UpdateJobRequest* request,
                                                     v1::Job* reply) {
  return Begin(context, calls_, &TrainingCalls::UpdateJob, request, reply);
}

grpc::ServerUnaryReactor* TrainingService::ListQuotas(grpc::CallbackServerContext* context,
                                                      const v1::ListQuotasRequest* request,
                                                      v1::ListQuotasReply* reply) {
  return Begin(context, calls_, &TrainingCalls::ListQuotas, request, reply);
}

grpc::ServerUnaryReactor* TrainingService::SetQuota(grpc::CallbackServerContext* context,
                                                    const v1::SetQuotaRequest* request,
                                                    v1::QuotaState* reply) {
  return Begin(context, calls_, &TrainingCalls::SetQuota, request, reply);
}

grpc::ServerUnaryReactor* TrainingService::RemoveQuota(grpc::CallbackServerContext* context,
                                                       const v1::RemoveQuotaRequest* request,
                                                       v1::RemoveQuotaReply* reply) {
  return Begin(context, calls_, &TrainingCalls::RemoveQuota, request, reply);
}

grpc::ServerUnaryReactor* TrainingService::Predict(grpc::CallbackServerContext* context,
                                                   const v1::PredictRequest* request,
                                                   v1::SubmitReply* reply) {
  return Begin(context, calls_, &TrainingCalls::Predict, request, reply);
}

grpc::Status TrainingService::PredictRows(grpc::ServerContext* context,
                                          const v1::PredictRowsRequest* request,
                                          v1::PredictRowsReply* reply) {
  CallLimits limits;
  limits.cancelled = [context] { return context->IsCancelled(); };
  // Without a deadline it is far beyond what the clock can say.
  const auto left = context->deadline() - std::chrono::system_clock::now();
  if (left <= std::chrono::hours(1)) limits.patience = absl::FromChrono(left);
  return ToGrpc(calls_->PredictRows(*request, limits, reply));
}

grpc::Status TrainingService::Plan(grpc::ServerContext*, const v1::PlanRequest* request,
                                   v1::PlanReply* reply) {
  return ToGrpc(calls_->Plan(*request, reply));
}

grpc::Status TrainingService::GetJob(grpc::ServerContext*, const v1::GetJobRequest* request,
                                     v1::Job* reply) {
  return ToGrpc(calls_->GetJob(*request, reply));
}

grpc::Status TrainingService::ListJobs(grpc::ServerContext*, const v1::ListJobsRequest* request,
                                       v1::ListJobsReply* reply) {
  return ToGrpc(calls_->ListJobs(*request, reply));
}

grpc::Status TrainingService::DeleteJob(grpc::ServerContext*, const v1::DeleteJobRequest* request,
                                        v1::DeleteJobReply* reply) {
  return ToGrpc(calls_->DeleteJob(*request, reply));
}

grpc::Status TrainingService::PinJob(grpc::ServerContext*, const v1::PinJobRequest* request,
                                     v1::Job* reply) {
  return ToGrpc(calls_->PinJob(*request, reply));
}

grpc::Status TrainingService::CollectGarbage(grpc::ServerContext*,
                                             const v1::CollectGarbageRequest* request,
                                             v1::CollectGarbageReply* reply) {
  return ToGrpc(calls_->CollectGarbage(*request, reply));
}

grpc::Status TrainingService::ListWorkers(grpc::ServerContext*,
                                          const v1::ListWorkersRequest* request,
                                          v1::ListWorkersReply* reply) {
  return ToGrpc(calls_->ListWorkers(*request, reply));
}

grpc::Status TrainingService::WatchJob(grpc::ServerContext* context,
                                       const v1::WatchJobRequest* request,
                                       grpc::ServerWriter<v1::Job>* writer) {
  const OpenStream open(*this, *context);
  if (!open.status().ok()) return ToGrpc(open.status());
  return ToGrpc(calls_->WatchJob(*request, SinkOf(context, writer)));
}

grpc::Status TrainingService::GetMetrics(grpc::ServerContext* context,
                                         const v1::GetMetricsRequest* request,
                                         grpc::ServerWriter<v1::MetricsReply>* writer) {
  const OpenStream open(*this, *context);
  if (!open.status().ok()) return ToGrpc(open.status());
  return ToGrpc(calls_->GetMetrics(*request, SinkOf(context, writer)));
}

grpc::Status TrainingService::FetchArtifact(grpc::ServerContext* context,
                                            const v1::FetchArtifactRequest* request,
                                            grpc::ServerWriter<v1::FetchArtifactReply>* writer) {
  return ToGrpc(calls_->FetchArtifact(*request, SinkOf(context, writer)));
}

}  // namespace traind
