#include "client/training_client.h"

#include <absl/random/random.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_split.h>
#include <absl/time/clock.h>
#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <utility>
#include <vector>

#include "common/wire/channel_credentials.h"
#include "common/wire/status_details.h"
#include "proto/training_service.grpc.pb.h"

namespace traind {
namespace {

std::chrono::system_clock::time_point GrpcDeadline(absl::Duration from_now) {
  // gRPC converts it into a monotonic deadline at once.
  constexpr absl::Duration kLongest = absl::Hours(24 * 365);
  return std::chrono::system_clock::now() +
         absl::ToChronoMicroseconds(std::clamp(from_now, absl::ZeroDuration(), kLongest));
}

class GrpcJobWatch final : public JobWatch {
 public:
  GrpcJobWatch(v1::TrainingService::Stub& stub, const v1::WatchJobRequest& request)
      : reader_(stub.PrepareAsyncWatchJob(&context_, request, &queue_)) {
    reader_->StartCall(Tag(Step::kStart));
  }
  ~GrpcJobWatch() override {
    context_.TryCancel();
    queue_.Shutdown();
    void* tag;
    bool ok;
    while (queue_.Next(&tag, &ok)) {
    }
  }

  Event Next(absl::Duration wait, v1::Job& job) override {
    if (ended_) return Event::kEnded;
    const auto until = GrpcDeadline(wait);
    while (true) {
      void* tag;
      bool ok;
      if (queue_.AsyncNext(&tag, &ok, until) != grpc::CompletionQueue::GOT_EVENT) {
        return Event::kNothing;
      }
      switch (static_cast<Step>(reinterpret_cast<intptr_t>(tag))) {
        case Step::kStart:
          ok ? Read() : Finish();
          break;
        case Step::kRead:
          if (!ok) {
            Finish();
            break;
          }
          job = std::move(message_);
          Read();
          return Event::kJob;
        case Step::kFinish:
          ended_ = true;
          status_ = FromGrpcWithDetails(grpc_status_);
          return Event::kEnded;
      }
    }
  }
  const absl::Status& status() const override { return status_; }

 private:
  enum class Step : intptr_t { kStart = 1, kRead = 2, kFinish = 3 };
  static void* Tag(Step step) { return reinterpret_cast<void*>(static_cast<intptr_t>(step)); }
  void Read() { reader_->Read(&message_, Tag(Step::kRead)); }
  void Finish() { reader_->Finish(&grpc_status_, Tag(Step::kFinish)); }

  grpc::ClientContext context_;
  grpc::CompletionQueue queue_;
  std::unique_ptr<grpc::ClientAsyncReader<v1::Job>> reader_;
  v1::Job message_;
  grpc::Status grpc_status_;
  absl::Status status_;
  bool ended_ = false;
};

int64_t LastSequence(const v1::MetricsReply& reply) {
  return reply.points().empty() ? 0 : reply.points().rbegin()->sequence();
}

int64_t LastSequence(const v1::EventsReply& reply) {
  return reply.events().empty() ? 0 : reply.events().rbegin()->sequence();
}

}  // namespace

bool IsConnectionLoss(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kCancelled:  // by a traind that stops
    case absl::StatusCode::kUnknown:
    case absl::StatusCode::kInternal:  // a stream was reset
    case absl::StatusCode::kDeadlineExceeded:
      return true;
    default:
      return false;
  }
}

absl::Duration Backoff::Next() {
  thread_local absl::BitGen random;
  const double share = absl::Uniform(random, 0.75, 1.25);
  const absl::Duration wait = base_ * share;
  base_ = std::min(base_ * 2, absl::Seconds(1));
  return wait;
}

struct TrainingClient::Connection {
  // One for each address. Calls that are under way keep those that they began with.
  std::vector<std::shared_ptr<grpc::Channel>> channels;
  std::vector<std::unique_ptr<v1::TrainingService::Stub>> stubs;
  size_t at = 0;
  absl::Status secured;  // whether the files of TLS and the token were read
  bool made = false;     // it has been connected at least once

  grpc::Channel& channel() { return *channels[at]; }
  v1::TrainingService::Stub& stub() { return *stubs[at]; }
  bool several() const { return channels.size() > 1; }
  // Another traind may serve at the next address.
  void MoveOn() { at = (at + 1) % channels.size(); }
  // Looks at one address after the other; false: nobody answers at any of them.
  bool Find(absl::Duration patience, const Clock& clock) {
    constexpr absl::Duration kEach = absl::Milliseconds(500);
    const absl::Duration end = clock.MonotonicNow() + patience;
    while (!channel().WaitForConnected(GrpcDeadline(kEach))) {
      if (clock.MonotonicNow() >= end) return false;
      MoveOn();
    }
    return true;
  }
};

TrainingClient::TrainingClient(Options options, const Clock& clock)
    : options_(std::move(options)), clock_(clock) {}
TrainingClient::~TrainingClient() = default;

TrainingClient::Connection& TrainingClient::connection() {
  if (connection_ == nullptr) {
    grpc::ChannelArguments arguments;
    // We have our own backoff; gRPC's would hide that traind is back.
    arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 50);
    // gRPC takes it as the time that a try to connect may last at least. With TLS a link of 400 ms
    // there and back needs four times that.
    arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 2000);
    arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 500);
    // $http_proxy is not meant for this connection.
    arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
    arguments.SetMaxReceiveMessageSize(64 << 20);
    connection_ = std::make_unique<Connection>();
    auto credentials = MakeChannelCredentials({options_.tls_dir, options_.token_file, false});
    connection_->secured = credentials.status();
    for (const std::string& server :
         std::vector<std::string>(absl::StrSplit(options_.server, ','))) {
      connection_->channels.push_back(grpc::CreateCustomChannel(
          server, credentials.ok() ? *credentials : grpc::InsecureChannelCredentials(), arguments));
      connection_->stubs.push_back(v1::TrainingService::NewStub(connection_->channels.back()));
    }
  }
  return *connection_;
}

absl::Status TrainingClient::Named(const absl::Status& status) const {
  if (status.code() != absl::StatusCode::kUnavailable) return status;
  return absl::UnavailableError(
      absl::StrCat("cannot reach traind at ", options_.server, ": ", status.message()));
}

absl::Status TrainingClient::Connect() {
  Connection& to = connection();
  if (to.made || !to.secured.ok()) return to.secured;
  const absl::Duration patience = std::min(options_.connect, options_.call);
  if (to.several()) {
    to.made = to.Find(patience, clock_);
    if (to.made) return absl::OkStatus();
    return Named(absl::UnavailableError("no answer in " + absl::FormatDuration(patience)));
  }
  // A traind that starts again listens within that.
  constexpr absl::Duration kStart = absl::Seconds(1);
  const absl::Duration first = std::min(patience, kStart);
  if (to.channel().WaitForConnected(GrpcDeadline(first))) {
    to.made = true;
    return absl::OkStatus();
  }
  // A call that must fail tells the reason.
  grpc::ClientContext context;
  context.set_deadline(GrpcDeadline(absl::Milliseconds(200)));
  v1::Job job;
  const grpc::Status why = to.stub().GetJob(&context, v1::GetJobRequest(), &job);
  if (why.error_code() == grpc::StatusCode::UNAVAILABLE) {
    return Named(absl::UnavailableError(why.error_message()));
  }
  // A machine that is far away or busy may need longer.
  if (to.channel().WaitForConnected(GrpcDeadline(patience - first))) {
    to.made = true;
    return absl::OkStatus();
  }
  return Named(absl::UnavailableError("no answer in " + absl::FormatDuration(patience)));
}

template <typename Request, typename Reply, typename Method>
absl::StatusOr<Reply> TrainingClient::Call(Method method, const Request& request) {
  const absl::Duration start = clock_.MonotonicNow();
  if (absl::Status status = Connect(); !status.ok()) return status;
  Backoff backoff;
  while (true) {
    grpc::ClientContext context;
    context.set_deadline(GrpcDeadline(options_.call - (clock_.MonotonicNow() - start)));
    Reply reply;
    const grpc::Status status = (connection().stub().*method)(&context, request, &reply);
    if (status.ok()) return reply;
    const absl::Duration wait = backoff.Next();
    if (status.error_code() != grpc::StatusCode::UNAVAILABLE ||
        clock_.MonotonicNow() - start + wait > options_.call) {
      return Named(FromGrpcWithDetails(status));
    }
    absl::SleepFor(wait);
    if (connection().several()) {
      connection().MoveOn();
      connection().Find(options_.call - (clock_.MonotonicNow() - start), clock_);
    }
  }
}

using Stub = v1::TrainingService::Stub;

absl::StatusOr<v1::SubmitReply> TrainingClient::Submit(const v1::SubmitRequest& request) {
  return Call<v1::SubmitRequest, v1::SubmitReply>(&Stub::Submit, request);
}

absl::StatusOr<v1::UploadReply> TrainingClient::Upload(const v1::UploadRequest& request) {
  return Call<v1::UploadRequest, v1::UploadReply>(&Stub::Upload, request);
}

absl::StatusOr<v1::UploadReply> TrainingClient::UploadParts(
    absl::Duration limit, const std::function<bool(v1::UploadRequest&)>& next) {
  grpc::ClientContext context;
  context.set_deadline(GrpcDeadline(limit));
  v1::UploadReply reply;
  const auto writer = connection().stub().UploadParts(&context, &reply);
  v1::UploadRequest part;
  bool open = true;  // traind has not ended the call
  while (open && next(part)) open = writer->Write(part);
  if (open) writer->WritesDone();
  const grpc::Status status = writer->Finish();
  if (!status.ok()) return Named(FromGrpcWithDetails(status));
  return reply;
}

absl::StatusOr<v1::SubmitBatchReply> TrainingClient::SubmitBatch(
    const v1::SubmitBatchRequest& request) {
  return Call<v1::SubmitBatchRequest, v1::SubmitBatchReply>(&Stub::SubmitBatch, request);
}

absl::StatusOr<v1::SubmitReply> TrainingClient::Predict(const v1::PredictRequest& request) {
  return Call<v1::PredictRequest, v1::SubmitReply>(&Stub::Predict, request);
}

absl::StatusOr<v1::PredictRowsReply> TrainingClient::PredictRows(
    const v1::PredictRowsRequest& request) {
  return Call<v1::PredictRowsRequest, v1::PredictRowsReply>(&Stub::PredictRows, request);
}

absl::StatusOr<v1::PlanReply> TrainingClient::Plan(const v1::PlanRequest& request) {
  return Call<v1::PlanRequest, v1::PlanReply>(&Stub::Plan, request);
}

absl::StatusOr<v1::Job> TrainingClient::GetJob(const std::string& id_or_name) {
  v1::GetJobRequest request;
  request.set_id(id_or_name);
  return Call<v1::GetJobRequest, v1::Job>(&Stub::GetJob, request);
}

absl::StatusOr<v1::Job> TrainingClient::GetJobOnce(const std::string& id, absl::Duration limit) {
  grpc::ClientContext context;
  context.set_deadline(GrpcDeadline(limit));
  v1::GetJobRequest request;
  request.set_id(id);
  v1::Job job;
  const grpc::Status status = connection().stub().GetJob(&context, request, &job);
  if (status.error_code() == grpc::StatusCode::UNAVAILABLE) connection().MoveOn();
  if (!status.ok()) return Named(FromGrpcWithDetails(status));
  return job;
}

absl::StatusOr<v1::ListJobsReply> TrainingClient::ListJobs(v1::ListJobsRequest request) {
  v1::ListJobsReply all;
  const absl::Status status = EachPage(std::move(request), [&all](v1::ListJobsReply page) {
    for (v1::Job& job : *page.mutable_jobs()) all.add_jobs()->Swap(&job);
  });
  if (!status.ok()) return status;
  return all;
}

absl::Status TrainingClient::EachPage(v1::ListJobsRequest request,
                                      const std::function<void(v1::ListJobsReply)>& on_page) {
  auto page = ListJobsPage(request);
  while (page.ok()) {
    const bool repeats = page->next_page_token() == request.page_token();  // it would never end
    if (repeats || page->next_page_token().empty()) {
      on_page(*std::move(page));
      return absl::OkStatus();
    }
    request.set_page_token(page->next_page_token());
    grpc::ClientContext context;
    context.set_deadline(GrpcDeadline(options_.call));
    grpc::CompletionQueue queue;
    v1::ListJobsReply next;
    grpc::Status status;
    const auto call = connection().stub().AsyncListJobs(&context, request, &queue);
    call->Finish(&next, &status, nullptr);
    on_page(*std::move(page));
    void* tag;
    bool ok;
    queue.Next(&tag, &ok);
    queue.Shutdown();
    while (queue.Next(&tag, &ok)) {
    }
    if (status.error_code() == grpc::StatusCode::UNAVAILABLE) {
      page = ListJobsPage(request);  // it tries again
    } else if (status.ok()) {
      page = std::move(next);
    } else {
      return Named(FromGrpcWithDetails(status));
    }
  }
  return page.status();
}

absl::StatusOr<v1::ListJobsReply> TrainingClient::ListJobsPage(const v1::ListJobsRequest& request) {
  return Call<v1::ListJobsRequest, v1::ListJobsReply>(&Stub::ListJobs, request);
}

absl::StatusOr<v1::Job> TrainingClient::FinishJob(const std::string& id) {
  v1::FinishJobRequest request;
  request.set_id(id);
  return Call<v1::FinishJobRequest, v1::Job>(&Stub::FinishJob, request);
}

absl::StatusOr<v1::Job> TrainingClient::PauseJob(const std::string& id) {
  v1::PauseJobRequest request;
  request.set_id(id);
  return Call<v1::PauseJobRequest, v1::Job>(&Stub::PauseJob, request);
}

absl::StatusOr<v1::Job> TrainingClient::ResumeJob(const std::string& id) {
  v1::ResumeJobRequest request;
  request.set_id(id);
  return Call<v1::ResumeJobRequest, v1::Job>(&Stub::ResumeJob, request);
}

absl::StatusOr<v1::Job> TrainingClient::UpdateJob(const v1::UpdateJobRequest& request) {
  return Call<v1::UpdateJobRequest, v1::Job>(&Stub::UpdateJob, request);
}

absl::StatusOr<v1::ProposeTrialReply> TrainingClient::ProposeTrial(
    const v1::ProposeTrialRequest& request) {
  return Call<v1::ProposeTrialRequest, v1::ProposeTrialReply>(&Stub::ProposeTrial, request);
}

absl::StatusOr<v1::Job> TrainingClient::CancelJob(const std::string& id) {
  v1::CancelJobRequest request;
  request.set_id(id);
  return Call<v1::CancelJobRequest, v1::Job>(&Stub::CancelJob, request);
}

absl::StatusOr<v1::DeleteJobReply> TrainingClient::DeleteJob(const std::string& id_or_name) {
  v1::DeleteJobRequest request;
  request.set_id(id_or_name);
  return Call<v1::DeleteJobRequest, v1::DeleteJobReply>(&Stub::DeleteJob, request);
}

absl::StatusOr<v1::Job> TrainingClient::PinJob(const v1::PinJobRequest& request) {
  return Call<v1::PinJobRequest, v1::Job>(&Stub::PinJob, request);
}

absl::StatusOr<v1::CollectGarbageReply> TrainingClient::CollectGarbage(bool dry_run) {
  v1::CollectGarbageRequest request;
  request.set_dry_run(dry_run);
  return Call<v1::CollectGarbageRequest, v1::CollectGarbageReply>(&Stub::CollectGarbage, request);
}

absl::StatusOr<v1::ListQuotasReply> TrainingClient::ListQuotas(
    const v1::ListQuotasRequest& request) {
  return Call<v1::ListQuotasRequest, v1::ListQuotasReply>(&Stub::ListQuotas, request);
}

absl::StatusOr<v1::QuotaState> TrainingClient::SetQuota(const v1::SetQuotaRequest& request) {
  return Call<v1::SetQuotaRequest, v1::QuotaState>(&Stub::SetQuota, request);
}

absl::StatusOr<v1::RemoveQuotaReply> TrainingClient::RemoveQuota(
    const v1::RemoveQuotaRequest& request) {
  return Call<v1::RemoveQuotaRequest, v1::RemoveQuotaReply>(&Stub::RemoveQuota, request);
}

absl::StatusOr<v1::WorkerInfo> TrainingClient::UpdateWorker(
    const v1::UpdateWorkerRequest& request) {
  return Call<v1::UpdateWorkerRequest, v1::WorkerInfo>(&Stub::UpdateWorker, request);
}

absl::StatusOr<v1::ListWorkersReply> TrainingClient::ListWorkers() {
  return Call<v1::ListWorkersRequest, v1::ListWorkersReply>(&Stub::ListWorkers, {});
}

std::unique_ptr<JobWatch> TrainingClient::WatchJob(const std::string& id, int64_t since_version) {
  v1::WatchJobRequest request;
  request.set_id(id);
  request.set_since_version(since_version);
  return std::make_unique<GrpcJobWatch>(connection().stub(), request);
}

template <typename Request, typename Reply, typename Method>
absl::Status TrainingClient::ReadStream(Method method, Request& request, absl::Duration limit,
                                        const std::function<bool(const Reply&)>& on_reply,
                                        const std::function<void(Request&)>& resume) {
  const absl::Duration start = clock_.MonotonicNow();
  if (absl::Status status = Connect(); !status.ok()) return status;
  Backoff backoff;
  absl::Duration last_contact = start;
  while (true) {
    grpc::ClientContext context;
    context.set_deadline(GrpcDeadline(limit - (clock_.MonotonicNow() - start)));
    auto reader = (connection().stub().*method)(&context, request);
    Reply reply;
    bool ended = false;
    while (!ended && reader->Read(&reply)) {
      ended = !on_reply(reply) || reply.end();
      backoff.Reset();
      last_contact = clock_.MonotonicNow();
    }
    if (ended) context.TryCancel();
    const absl::Status status = FromGrpcWithDetails(reader->Finish());
    if (ended) return absl::OkStatus();
    const absl::Duration now = clock_.MonotonicNow();
    if (now - start >= limit)
      return absl::DeadlineExceededError("the time of --timeout has passed");
    if (!status.ok() && !IsConnectionLoss(status)) return status;
    // Following survives a restart of traind; reading what exists need not.
    const absl::Duration patience = request.follow() ? limit : options_.connect;
    if (now - last_contact > patience) {
      return status.ok() ? absl::UnavailableError("the stream has no end frame") : Named(status);
    }
    absl::SleepFor(backoff.Next());
    resume(request);
  }
}

absl::Status TrainingClient::GetMetrics(
    const std::string& id, bool follow, absl::Duration limit,
    const std::function<bool(const v1::MetricsReply&)>& on_reply) {
  v1::GetMetricsRequest request;
  request.set_id(id);
  request.set_follow(follow);
  int64_t last = 0;
  return ReadStream<v1::GetMetricsRequest, v1::MetricsReply>(
      &Stub::GetMetrics, request, limit,
      [&](const v1::MetricsReply& reply) {
        last = std::max(last, LastSequence(reply));
        return on_reply(reply);
      },
      [&](v1::GetMetricsRequest& again) { again.set_after_sequence(last); });
}

absl::Status TrainingClient::GetEvents(
    const std::string& id, bool follow, absl::Duration limit,
    const std::function<bool(const v1::EventsReply&)>& on_reply) {
  v1::GetEventsRequest request;
  request.set_id(id);
  request.set_follow(follow);
  int64_t last = 0;
  return ReadStream<v1::GetEventsRequest, v1::EventsReply>(
      &Stub::GetEvents, request, limit,
      [&](const v1::EventsReply& reply) {
        last = std::max(last, LastSequence(reply));
        return on_reply(reply);
      },
      [&](v1::GetEventsRequest& again) { again.set_after_sequence(last); });
}

absl::Status TrainingClient::GetLogs(v1::GetLogsRequest request, absl::Duration limit,
                                     const std::function<bool(const v1::LogsReply&)>& on_reply) {
  std::map<std::pair<int64_t, int>, int64_t> read;  // (attempt, rank)
  return ReadStream<v1::GetLogsRequest, v1::LogsReply>(
      &Stub::GetLogs, request, limit,
      [&](const v1::LogsReply& reply) {
        for (const v1::LogLine& line : reply.lines()) {
          read[{line.attempt(), line.rank()}] = line.offset();
        }
        return on_reply(reply);
      },
      [&](v1::GetLogsRequest& again) {
        again.clear_after();
        if (!read.empty()) again.set_tail(0);
        for (const auto& [whose, offset] : read) {
          v1::LogPosition& position = *again.add_after();
          position.set_attempt(whose.first);
          position.set_rank(whose.second);
          position.set_offset(offset);
        }
      });
}

absl::StatusOr<v1::GetSpecReply> TrainingClient::GetSpec(const std::string& id_or_name) {
  v1::GetSpecRequest request;
  request.set_id(id_or_name);
  return Call<v1::GetSpecRequest, v1::GetSpecReply>(&Stub::GetSpec, request);
}

absl::StatusOr<FetchedFile> TrainingClient::FetchArtifact(
    const std::string& id, const std::string& name, absl::Duration limit,
    const std::function<absl::Status(absl::string_view)>& sink) {
  const absl::Duration start = clock_.MonotonicNow();
  if (absl::Status status = Connect(); !status.ok()) return status;
  v1::FetchArtifactRequest request;
  request.set_id(id);
  request.set_name(name);
  grpc::ClientContext context;
  context.set_deadline(GrpcDeadline(limit - (clock_.MonotonicNow() - start)));
  auto reader = connection().stub().FetchArtifact(&context, request);
  v1::FetchArtifactReply reply;
  FetchedFile file;
  int64_t received = 0;
  for (bool first = true; reader->Read(&reply); first = false) {
    if (first) {
      file.sha256 = reply.sha256();
      file.bytes = reply.bytes();
    }
    received += static_cast<int64_t>(reply.data().size());
    absl::Status written = received > file.bytes
                               ? absl::DataLossError("more bytes arrived than were announced")
                               : sink(reply.data());
    if (!written.ok()) {
      context.TryCancel();
      reader->Finish();
      return written;
    }
  }
  if (const grpc::Status status = reader->Finish(); !status.ok())
    return Named(FromGrpcWithDetails(status));
  if (received != file.bytes || file.sha256.empty()) {
    return absl::DataLossError(
        absl::StrCat(received, " of ", file.bytes, " bytes of ", name, " arrived"));
  }
  return file;
}

}  // namespace traind
