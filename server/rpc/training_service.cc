#include "server/rpc/training_service.h"

#include <absl/strings/str_cat.h>

#include <chrono>

#include "common/base/clock.h"
#include "common/wire/status_details.h"
#include "server/rpc/call_record.h"

namespace traind {
namespace {

constexpr int kMaxStreams = 256;
constexpr int kMaxStreamsOfConnection = 64;

absl::Status ManyStreams(int most, absl::string_view whose) {
  return absl::ResourceExhaustedError(absl::StrCat("more than ", most, " streams", whose,
                                                   " are open; end some, or ask with GetJob"));
}

// Whether the caller of a stream still counts; looked up now and then.
std::function<bool()> Admitted(grpc::ServerContext* context, const CallChecks& checks) {
  return [context, checks, at = SystemClock().MonotonicNow()]() mutable {
    const absl::Duration now = SystemClock().MonotonicNow();
    if (now < at + kRecheckStreams) return true;
    at = now;
    return CallerOf(*context, checks).ok();
  };
}

// The call's thread alone uses the sink.
template <typename Reply>
ReplySink<Reply> SinkOf(grpc::ServerContext* context, const CallChecks& checks,
                        grpc::ServerWriter<Reply>* writer) {
  return {[writer](const Reply& reply) { return writer->Write(reply); },
          [context, admitted = Admitted(context, checks)] {
            return context->IsCancelled() || !admitted();
          }};
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

// Starts a call that is answered later, from another thread.
template <typename Call>
grpc::ServerUnaryReactor* TrainingService::Begin(const char* method,
                                                 grpc::CallbackServerContext* context,
                                                 const google::protobuf::Message& request,
                                                 const google::protobuf::Message& reply,
                                                 const Call& call) {
  grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
  const absl::Duration begin = SystemClock().MonotonicNow();
  const auto caller = CallerOf(*context, checks_);
  if (!caller.ok()) {
    reactor->Finish(ToGrpcWithDetails(caller.status()));
    return reactor;
  }
  call(*caller, [this, method, begin, reactor, caller = *caller, &request,
                 &reply](const absl::Status& status) {
    Add(method, begin, status);
    Record(method, caller, request, reply, status);
    reactor->Finish(ToGrpcWithDetails(status));
  });
  return reactor;
}

// Answers by a stream, one of a bounded number.
template <typename Request, typename Reply>
grpc::Status TrainingService::Stream(grpc::ServerContext* context,
                                     absl::Status (TrainingCalls::*call)(const Request&,
                                                                         const ReplySink<Reply>&),
                                     const Request& request, grpc::ServerWriter<Reply>* writer) {
  const auto caller = CallerOf(*context, checks_);
  if (!caller.ok()) return ToGrpcWithDetails(caller.status());
  const OpenStream open(*this, *context);
  if (!open.status().ok()) return ToGrpcWithDetails(open.status());
  const absl::Status status =
      (calls_->*call)(request, SinkOf(context, {checks_.gate, nullptr}, writer));
  // A stream that ended because its token counts no more says so.
  const auto still = CallerOf(*context, {checks_.gate, nullptr});
  return ToGrpcWithDetails(still.ok() ? status : still.status());
}

template <typename Call>
grpc::Status TrainingService::Count(const char* method, grpc::ServerContext* context,
                                    const google::protobuf::Message& request,
                                    const google::protobuf::Message& reply, const Call& call) {
  const absl::Duration begin = SystemClock().MonotonicNow();
  const auto caller = CallerOf(*context, checks_);
  if (!caller.ok()) return ToGrpcWithDetails(caller.status());
  const absl::Status status = call(*caller);
  Add(method, begin, status);
  Record(method, *caller, request, reply, status);
  return ToGrpcWithDetails(status);
}

void TrainingService::Record(const char* method, const Caller& caller,
                             const google::protobuf::Message& request,
                             const google::protobuf::Message& reply, const absl::Status& status) {
  if (checks_.gate == nullptr) return;
  checks_.gate->Record(caller, method, SubjectOf(request, reply), status, SystemClock().WallNow());
}

void TrainingService::Add(const char* method, absl::Duration begin, const absl::Status& status) {
  figures_.Add(method, absl::StatusCodeToString(status.code()),
               SystemClock().MonotonicNow() - begin);
}

grpc::ServerUnaryReactor* TrainingService::Submit(grpc::CallbackServerContext* context,
                                                  const v1::SubmitRequest* request,
                                                  v1::SubmitReply* reply) {
  return Begin("Submit", context, *request, *reply, [&](const Caller& caller, Done done) {
    calls_->Submit(caller, *request, reply, std::move(done));
  });
}

grpc::ServerUnaryReactor* TrainingService::SubmitBatch(grpc::CallbackServerContext* context,
                                                       const v1::SubmitBatchRequest* request,
                                                       v1::SubmitBatchReply* reply) {
  return Begin("SubmitBatch", context, *request, *reply, [&](const Caller& caller, Done done) {
    calls_->SubmitBatch(caller, *request, reply, std::move(done));
  });
}

grpc::ServerUnaryReactor* TrainingService::FinishJob(grpc::CallbackServerContext* context,
                                                     const v1::FinishJobRequest* request,
                                                     v1::Job* reply) {
  return Begin("FinishJob", context, *request, *reply, [&](const Caller& caller, Done done) {
    calls_->FinishJob(caller, *request, reply, std::move(done));
  });
}

grpc::ServerUnaryReactor* TrainingService::CancelJob(grpc::CallbackServerContext* context,
                                                     const v1::CancelJobRequest* request,
                                                     v1::Job* reply) {
  return Begin("CancelJob", context, *request, *reply, [&](const Caller& caller, Done done) {
    calls_->CancelJob(caller, *request, reply, std::move(done));
  });
}

grpc::ServerUnaryReactor* TrainingService::PauseJob(grpc::CallbackServerContext* context,
                                                    const v1::PauseJobRequest* request,
                                                    v1::Job* reply) {
  return Begin("PauseJob", context, *request, *reply, [&](const Caller& caller, Done done) {
    calls_->PauseJob(caller, *request, reply, std::move(done));
  });
}

grpc::ServerUnaryReactor* TrainingService::ResumeJob(grpc::CallbackServerContext* context,
                                                     const v1::ResumeJobRequest* request,
                                                     v1::Job* reply) {
  return Begin("ResumeJob", context, *request, *reply, [&](const Caller& caller, Done done) {
    calls_->ResumeJob(caller, *request, reply, std::move(done));
  });
}

grpc::ServerUnaryReactor* TrainingService::UpdateJob(grpc::CallbackServerContext* context,
                                                     const v1::UpdateJobRequest* request,
                                                     v1::Job* reply) {
  return Begin("UpdateJob", context, *request, *reply, [&](const Caller& caller, Done done) {
    calls_->UpdateJob(caller, *request, reply, std::move(done));
  });
}

grpc::ServerUnaryReactor* TrainingService::ProposeTrial(grpc::CallbackServerContext* context,
                                                        const v1::ProposeTrialRequest* request,
                                                        v1::ProposeTrialReply* reply) {
  return Begin("ProposeTrial", context, *request, *reply, [&](const Caller& caller, Done done) {
    calls_->ProposeTrial(caller, *request, reply, std::move(done));
  });
}

grpc::ServerUnaryReactor* TrainingService::ListQuotas(grpc::CallbackServerContext* context,
                                                      const v1::ListQuotasRequest* request,
                                                      v1::ListQuotasReply* reply) {
  return Begin("ListQuotas", context, *request, *reply, [&](const Caller&, Done done) {
    calls_->ListQuotas(*request, reply, std::move(done));
  });
}

grpc::ServerUnaryReactor* TrainingService::SetQuota(grpc::CallbackServerContext* context,
                                                    const v1::SetQuotaRequest* request,
                                                    v1::QuotaState* reply) {
  return Begin("SetQuota", context, *request, *reply, [&](const Caller&, Done done) {
    calls_->SetQuota(*request, reply, std::move(done));
  });
}

grpc::ServerUnaryReactor* TrainingService::RemoveQuota(grpc::CallbackServerContext* context,
                                                       const v1::RemoveQuotaRequest* request,
                                                       v1::RemoveQuotaReply* reply) {
  return Begin("RemoveQuota", context, *request, *reply, [&](const Caller&, Done done) {
    calls_->RemoveQuota(*request, reply, std::move(done));
  });
}

grpc::ServerUnaryReactor* TrainingService::UpdateWorker(grpc::CallbackServerContext* context,
                                                        const v1::UpdateWorkerRequest* request,
                                                        v1::WorkerInfo* reply) {
  return Begin("UpdateWorker", context, *request, *reply, [&](const Caller&, Done done) {
    calls_->UpdateWorker(*request, reply, std::move(done));
  });
}

grpc::ServerUnaryReactor* TrainingService::Predict(grpc::CallbackServerContext* context,
                                                   const v1::PredictRequest* request,
                                                   v1::SubmitReply* reply) {
  return Begin("Predict", context, *request, *reply, [&](const Caller& caller, Done done) {
    calls_->Predict(caller, *request, reply, std::move(done));
  });
}

grpc::Status TrainingService::PredictRows(grpc::ServerContext* context,
                                          const v1::PredictRowsRequest* request,
                                          v1::PredictRowsReply* reply) {
  CallLimits limits;
  limits.cancelled = [context] { return context->IsCancelled(); };
  // Without a deadline it is far beyond what the clock can say.
  const auto left = context->deadline() - std::chrono::system_clock::now();
  if (left <= std::chrono::hours(1)) limits.patience = absl::FromChrono(left);
  return Count("PredictRows", context, *request, *reply,
               [&](const Caller&) { return calls_->PredictRows(*request, limits, reply); });
}

grpc::Status TrainingService::Plan(grpc::ServerContext* context, const v1::PlanRequest* request,
                                   v1::PlanReply* reply) {
  return Count("Plan", context, *request, *reply,
               [&](const Caller& caller) { return calls_->Plan(caller, *request, reply); });
}

grpc::Status TrainingService::Upload(grpc::ServerContext* context, const v1::UploadRequest* request,
                                     v1::UploadReply* reply) {
  return Count("Upload", context, *request, *reply,
               [&](const Caller&) { return calls_->Upload(*request, reply); });
}

grpc::Status TrainingService::UploadParts(grpc::ServerContext* context,
                                          grpc::ServerReader<v1::UploadRequest>* parts,
                                          v1::UploadReply* reply) {
  const UploadSource source = {
      [parts, admitted = Admitted(context, {checks_.gate, nullptr})](v1::UploadRequest* part) {
        return admitted() && parts->Read(part);
      },
      [context] { context->TryCancel(); }};
  return Count("UploadParts", context, v1::UploadRequest(), *reply, [&](const Caller&) {
    const OpenStream open(*this, *context);
    return open.status().ok() ? calls_->UploadParts(source, reply) : open.status();
  });
}

grpc::Status TrainingService::GetJob(grpc::ServerContext* context, const v1::GetJobRequest* request,
                                     v1::Job* reply) {
  return Count("GetJob", context, *request, *reply,
               [&](const Caller&) { return calls_->GetJob(*request, reply); });
}

grpc::Status TrainingService::ListJobs(grpc::ServerContext* context,
                                       const v1::ListJobsRequest* request,
                                       v1::ListJobsReply* reply) {
  return Count("ListJobs", context, *request, *reply,
               [&](const Caller&) { return calls_->ListJobs(*request, reply); });
}

grpc::Status TrainingService::ListTrials(grpc::ServerContext* context,
                                         const v1::ListTrialsRequest* request,
                                         v1::ListTrialsReply* reply) {
  return Count("ListTrials", context, *request, *reply,
               [&](const Caller&) { return calls_->ListTrials(*request, reply); });
}

grpc::Status TrainingService::DeleteJob(grpc::ServerContext* context,
                                        const v1::DeleteJobRequest* request,
                                        v1::DeleteJobReply* reply) {
  return Count("DeleteJob", context, *request, *reply,
               [&](const Caller& caller) { return calls_->DeleteJob(caller, *request, reply); });
}

grpc::Status TrainingService::PinJob(grpc::ServerContext* context, const v1::PinJobRequest* request,
                                     v1::Job* reply) {
  return Count("PinJob", context, *request, *reply,
               [&](const Caller& caller) { return calls_->PinJob(caller, *request, reply); });
}

grpc::Status TrainingService::CollectGarbage(grpc::ServerContext* context,
                                             const v1::CollectGarbageRequest* request,
                                             v1::CollectGarbageReply* reply) {
  return Count("CollectGarbage", context, *request, *reply,
               [&](const Caller&) { return calls_->CollectGarbage(*request, reply); });
}

grpc::Status TrainingService::ListWorkers(grpc::ServerContext* context,
                                          const v1::ListWorkersRequest* request,
                                          v1::ListWorkersReply* reply) {
  return Count("ListWorkers", context, *request, *reply,
               [&](const Caller&) { return calls_->ListWorkers(*request, reply); });
}

grpc::Status TrainingService::WatchJob(grpc::ServerContext* context,
                                       const v1::WatchJobRequest* request,
                                       grpc::ServerWriter<v1::Job>* writer) {
  return Stream(context, &TrainingCalls::WatchJob, *request, writer);
}

grpc::Status TrainingService::GetMetrics(grpc::ServerContext* context,
                                         const v1::GetMetricsRequest* request,
                                         grpc::ServerWriter<v1::MetricsReply>* writer) {
  return Stream(context, &TrainingCalls::GetMetrics, *request, writer);
}

grpc::Status TrainingService::GetLogs(grpc::ServerContext* context,
                                      const v1::GetLogsRequest* request,
                                      grpc::ServerWriter<v1::LogsReply>* writer) {
  return Stream(context, &TrainingCalls::GetLogs, *request, writer);
}

grpc::Status TrainingService::GetSpec(grpc::ServerContext* context,
                                      const v1::GetSpecRequest* request, v1::GetSpecReply* reply) {
  return Count("GetSpec", context, *request, *reply,
               [&](const Caller&) { return calls_->GetSpec(*request, reply); });
}

grpc::Status TrainingService::GetEvents(grpc::ServerContext* context,
                                        const v1::GetEventsRequest* request,
                                        grpc::ServerWriter<v1::EventsReply>* writer) {
  return Stream(context, &TrainingCalls::GetEvents, *request, writer);
}

grpc::Status TrainingService::FetchArtifact(grpc::ServerContext* context,
                                            const v1::FetchArtifactRequest* request,
                                            grpc::ServerWriter<v1::FetchArtifactReply>* writer) {
  const auto caller = CallerOf(*context, checks_);
  if (!caller.ok()) return ToGrpcWithDetails(caller.status());
  return ToGrpcWithDetails(
      calls_->FetchArtifact(*request, SinkOf(context, {checks_.gate, nullptr}, writer)));
}

}  // namespace traind
