// The C++ client library of traind's TrainingService.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>
#include <absl/time/time.h>

#include <functional>
#include <memory>
#include <string>

#include "common/base/clock.h"
#include "proto/job.pb.h"
#include "proto/training_service.pb.h"

namespace traind {

// A stream of a Job's changes, read without an additional thread.
// Threads: confined to one. Destroying it ends the call.
class JobWatch {
 public:
  virtual ~JobWatch() = default;
  enum class Event { kJob, kNothing, kEnded };
  // Waits up to `wait` for the next message. kEnded: status() says why; it is OK when traind closed
  // the stream because the Job is terminal or traind stops.
  virtual Event Next(absl::Duration wait, v1::Job& job) = 0;
  virtual const absl::Status& status() const = 0;
};

// Digest and size of a fetched file.
struct FetchedFile {
  std::string sha256;
  int64_t bytes = 0;
};

// Calls to one traind. The connection is made at the first call.
//
// While traind is UNAVAILABLE, unary calls are repeated with the same request, and so the same
// request_id, for up to `call`; `connect` limits the first connection. Backoff grows from 50 ms to
// 1 s, with jitter.
// Threads: confined to one. Errors: traind's own status; Unavailable names the server.
class TrainingClient {
 public:
  struct Options {
    std::string server;
    std::string tls_dir = "";     // has ca.pem; empty: the connection is not encrypted
    std::string token_file = "";  // empty: no token is sent
    absl::Duration connect = absl::Seconds(3);
    absl::Duration call = absl::Seconds(30);  // for one unary call including all repetitions
  };
  TrainingClient(Options options, const Clock& clock);
  ~TrainingClient();

  absl::StatusOr<v1::SubmitReply> Submit(const v1::SubmitRequest& request);
  // Stores many Jobs in one commit. Each entry has its own outcome.
  absl::StatusOr<v1::SubmitBatchReply> SubmitBatch(const v1::SubmitBatchRequest& request);
  // Sends a part of a file. A part that is repeated does no harm.
  absl::StatusOr<v1::UploadReply> Upload(const v1::UploadRequest& request);
  // Sends parts of one file that follow each other, in one attempt. next: sets the content of the
  // next part, and for the first one all fields; false: no more for now. limit: for the whole call.
  absl::StatusOr<v1::UploadReply> UploadParts(
      absl::Duration limit, const std::function<bool(v1::UploadRequest&)>& next);
  absl::StatusOr<v1::SubmitReply> Predict(const v1::PredictRequest& request);
  absl::StatusOr<v1::PredictRowsReply> PredictRows(const v1::PredictRowsRequest& request);
  absl::StatusOr<v1::PlanReply> Plan(const v1::PlanRequest& request);
  absl::StatusOr<v1::Job> GetJob(const std::string& id_or_name);
  // Makes a single attempt, within `limit`.
  absl::StatusOr<v1::Job> GetJobOnce(const std::string& id, absl::Duration limit);
  // Reads all pages.
  absl::StatusOr<v1::ListJobsReply> ListJobs(v1::ListJobsRequest request);
  // As ListJobs. traind makes the next page while on_page looks at one.
  absl::Status EachPage(v1::ListJobsRequest request,
                        const std::function<void(v1::ListJobsReply)>& on_page);
  absl::StatusOr<v1::ListJobsReply> ListJobsPage(const v1::ListJobsRequest& request);
  absl::StatusOr<v1::Job> FinishJob(const std::string& id);
  absl::StatusOr<v1::Job> PauseJob(const std::string& id);
  absl::StatusOr<v1::Job> ResumeJob(const std::string& id);
  absl::StatusOr<v1::Job> UpdateJob(const v1::UpdateJobRequest& request);
  // Adds a trial to a Job whose trials clients propose.
  absl::StatusOr<v1::ProposeTrialReply> ProposeTrial(const v1::ProposeTrialRequest& request);
  absl::StatusOr<v1::Job> CancelJob(const std::string& id);
  absl::StatusOr<v1::DeleteJobReply> DeleteJob(const std::string& id_or_name);
  absl::StatusOr<v1::Job> PinJob(const v1::PinJobRequest& request);
  absl::StatusOr<v1::CollectGarbageReply> CollectGarbage(bool dry_run);
  absl::StatusOr<v1::ListWorkersReply> ListWorkers();
  absl::StatusOr<v1::WorkerInfo> UpdateWorker(const v1::UpdateWorkerRequest& request);
  absl::StatusOr<v1::ListQuotasReply> ListQuotas(const v1::ListQuotasRequest& request);
  absl::StatusOr<v1::QuotaState> SetQuota(const v1::SetQuotaRequest& request);
  absl::StatusOr<v1::RemoveQuotaReply> RemoveQuota(const v1::RemoveQuotaRequest& request);

  std::unique_ptr<JobWatch> WatchJob(const std::string& id, int64_t since_version);

  // Passes every reply to on_reply until the end frame; after a broken connection it continues
  // where it stopped. on_reply returns false to stop. `limit` is for the whole call.
  absl::Status GetMetrics(const std::string& id, bool follow, absl::Duration limit,
                          const std::function<bool(const v1::MetricsReply&)>& on_reply);

  // Works like GetMetrics, for the Job's events.
  absl::Status GetEvents(const std::string& id, bool follow, absl::Duration limit,
                         const std::function<bool(const v1::EventsReply&)>& on_reply);
  // Works like GetMetrics, for lines of logs.
  absl::Status GetLogs(v1::GetLogsRequest request, absl::Duration limit,
                       const std::function<bool(const v1::LogsReply&)>& on_reply);
  absl::StatusOr<v1::GetSpecReply> GetSpec(const std::string& id_or_name);

  // Passes the bytes to sink, in order. DataLoss: fewer or more bytes than announced. The caller
  // must check the digest of what it has written.
  absl::StatusOr<FetchedFile> FetchArtifact(
      const std::string& id, const std::string& name, absl::Duration limit,
      const std::function<absl::Status(absl::string_view)>& sink);

 private:
  struct Connection;
  Connection& connection();
  absl::Status Connect();
  template <typename Request, typename Reply, typename Method>
  absl::StatusOr<Reply> Call(Method method, const Request& request);
  // Reads a stream to its end frame. resume: lets the request begin behind what was read.
  template <typename Request, typename Reply, typename Method>
  absl::Status ReadStream(Method method, Request& request, absl::Duration limit,
                          const std::function<bool(const Reply&)>& on_reply,
                          const std::function<void(Request&)>& resume);
  absl::Status Named(const absl::Status& status) const;

  const Options options_;
  const Clock& clock_;
  std::unique_ptr<Connection> connection_;
};

// Whether a stream's error is one of the connection, so that the same call may succeed later.
bool IsConnectionLoss(const absl::Status& status);

// The wait between two attempts: it grows from 50 ms to 1 s, with jitter.
// Threads: confined to one.
class Backoff {
 public:
  absl::Duration Next();
  void Reset() { base_ = kFirst; }

 private:
  static constexpr absl::Duration kFirst = absl::Milliseconds(50);
  absl::Duration base_ = kFirst;
};

}  // namespace traind
