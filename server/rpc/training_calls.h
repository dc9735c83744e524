// The calls of proto/training_service.proto, which traind answers for its clients.
#pragma once

#include <absl/base/thread_annotations.h>
#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <absl/synchronization/mutex.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/base/timed_wait.h"
#include "common/transfer/incoming_file.h"
#include "proto/training_service.pb.h"
#include "server/access/caller.h"
#include "server/access/submit_rate.h"
#include "server/intake/intake.h"
#include "server/loop/control_loop.h"
#include "server/loop/publish_pool.h"
#include "server/retention/collector.h"
#include "server/rpc/artifact_reader.h"
#include "server/rpc/checked_specs.h"
#include "server/rpc/job_memo.h"
#include "server/rpc/receivers.h"
#include "server/store/store.h"

namespace traind {

class GrpcWorkerGateway;

// A request_id may have so many characters.
inline constexpr size_t kMaxRequestId = 128;

// Takes the answer of a call; called exactly once, from any thread. Until then the caller keeps
// request and reply.
using Done = std::function<void(const absl::Status&)>;

// Takes the replies of a call that has several, on the call's thread.
template <typename Reply>
struct ReplySink {
  std::function<bool(const Reply&)> write;  // false: nobody takes more
  std::function<bool()> cancelled;
};

// Gives the parts of a file, on the call's thread.
struct UploadSource {
  std::function<bool(v1::UploadRequest*)> next;  // false: no more come
  std::function<void()> end;                     // ends the call, from any thread
};

struct CallLimits {
  std::optional<absl::Duration> patience;  // unset: as long as the call thinks right
  std::function<bool()> cancelled;
};

// The calls of clients, whichever way they come (gRPC or HTTP). Those with a Done wait for the
// control loop's commit and are answered from its thread; the others keep the caller's thread.
// Active Jobs are answered from the loop's views, terminal ones from the store.
// Threads: safe. Ownership: all arguments outlive the object.
// Callers that are known (tokens) change their own Jobs alone, unless they are admins; all Jobs may
// be read. Errors: as proto/training_service.proto says.
// submits_per_s: Jobs that each owner may submit; 0: there is no limit.
class TrainingCalls {
 public:
  TrainingCalls(std::string state_dir, ControlLoop* loop, Store* store, Intake* intake,
                GrpcWorkerGateway* workers, Collector* collector, double submits_per_s = 0)
      : state_dir_(std::move(state_dir)),
        loop_(loop),
        store_(store),
        intake_(intake),
        workers_(workers),
        collector_(collector),
        submit_rate_(submits_per_s) {}

  void Submit(const Caller& caller, const v1::SubmitRequest& request, v1::SubmitReply* reply,
              Done done);
  void SubmitBatch(const Caller& caller, const v1::SubmitBatchRequest& request,
                   v1::SubmitBatchReply* reply, Done done);
  void FinishJob(const Caller& caller, const v1::FinishJobRequest& request, v1::Job* reply,
                 Done done);
  void CancelJob(const Caller& caller, const v1::CancelJobRequest& request, v1::Job* reply,
                 Done done);
  void PauseJob(const Caller& caller, const v1::PauseJobRequest& request, v1::Job* reply,
                Done done);
  void ResumeJob(const Caller& caller, const v1::ResumeJobRequest& request, v1::Job* reply,
                 Done done);
  void UpdateJob(const Caller& caller, const v1::UpdateJobRequest& request, v1::Job* reply,
                 Done done);
  void ProposeTrial(const Caller& caller, const v1::ProposeTrialRequest& request,
                    v1::ProposeTrialReply* reply, Done done);
  absl::Status ListTrials(const v1::ListTrialsRequest& request, v1::ListTrialsReply* reply);

  void ListQuotas(const v1::ListQuotasRequest& request, v1::ListQuotasReply* reply, Done done);
  void SetQuota(const v1::SetQuotaRequest& request, v1::QuotaState* reply, Done done);
  void RemoveQuota(const v1::RemoveQuotaRequest& request, v1::RemoveQuotaReply* reply, Done done);

  void Predict(const Caller& caller, const v1::PredictRequest& request, v1::SubmitReply* reply,
               Done done);

  absl::Status PredictRows(const v1::PredictRowsRequest& request, const CallLimits& limits,
                           v1::PredictRowsReply* reply);
  absl::Status Plan(const Caller& caller, const v1::PlanRequest& request, v1::PlanReply* reply);
  absl::Status Upload(const v1::UploadRequest& request, v1::UploadReply* reply);
  absl::Status UploadParts(const UploadSource& source, v1::UploadReply* reply);
  absl::Status GetJob(const v1::GetJobRequest& request, v1::Job* reply);
  absl::Status ListJobs(const v1::ListJobsRequest& request, v1::ListJobsReply* reply);
  absl::Status WatchJob(const v1::WatchJobRequest& request, const ReplySink<v1::Job>& replies);
  absl::Status GetMetrics(const v1::GetMetricsRequest& request,
                          const ReplySink<v1::MetricsReply>& replies);
  absl::Status GetEvents(const v1::GetEventsRequest& request,
                         const ReplySink<v1::EventsReply>& replies);
  // The file that FetchArtifact sends.
  absl::StatusOr<ArtifactReader> OpenArtifact(const v1::FetchArtifactRequest& request) const;
  absl::Status FetchArtifact(const v1::FetchArtifactRequest& request,
                             const ReplySink<v1::FetchArtifactReply>& replies);
  absl::Status GetLogs(const v1::GetLogsRequest& request, const ReplySink<v1::LogsReply>& replies);
  absl::Status GetSpec(const v1::GetSpecRequest& request, v1::GetSpecReply* reply);
  absl::Status DeleteJob(const Caller& caller, const v1::DeleteJobRequest& request,
                         v1::DeleteJobReply* reply);
  absl::Status PinJob(const Caller& caller, const v1::PinJobRequest& request, v1::Job* reply);
  absl::Status CollectGarbage(const v1::CollectGarbageRequest& request,
                              v1::CollectGarbageReply* reply);
  absl::Status ListWorkers(const v1::ListWorkersRequest& request, v1::ListWorkersReply* reply);
  void UpdateWorker(const v1::UpdateWorkerRequest& request, v1::WorkerInfo* reply, Done done);

 private:
  // FailedPrecondition: they are in a folder of the user's.
  absl::StatusOr<ArtifactReader> OpenResults(const Job& job) const;
  // Looks for the whole file, else opens it to take parts.
  absl::StatusOr<std::unique_ptr<IncomingFile>> OpenUpload(const v1::UploadRequest& request,
                                                           v1::UploadReply* reply);
  void PauseWatch(const std::string& id) const;
  // Sends pages of a Job's record until its end, or until the Job is over and all is sent.
  // add_page(id, after_sequence, reply): adds what is stored; returns how much.
  template <typename Request, typename PageReply, typename AddPage>
  absl::Status SendRecord(const Request& request, const ReplySink<PageReply>& replies,
                          const AddPage& add_page);
  // Finds a Job by id, else by name. NotFound; FailedPrecondition: several have that name.
  absl::StatusOr<std::shared_ptr<const Job>> Find(const std::string& id_or_name) const;
  // Returns the error that lists the Jobs of one name, with their states and times.
  absl::Status SeveralCalled(absl::string_view name, const std::vector<std::string>& ids) const;
  // The id of a Job that may still change; FailedPrecondition: it is over. PermissionDenied: the
  // caller may not change it.
  absl::StatusOr<std::string> FindLive(const Caller& caller, const std::string& id_or_name) const;
  // PermissionDenied: the Job is somebody else's.
  static absl::Status CheckOwner(const Caller& caller, const Job& job);
  // Asks the loop for a change of a Job that may still change, and answers with the Job.
  using LoopCall = void (ControlLoop::*)(const std::string& job, ControlLoop::Answer answer);
  void Change(const Caller& caller, const std::string& id, v1::Job* reply, LoopCall call,
              Done done);
  // The same of a change that ends the Job: one that was `asked` for it before, and has ended, is
  // answered as it is.
  void End(const Caller& caller, const std::string& id, v1::Job* reply, LoopCall call,
           bool Job::*asked, Done done);
  struct Asked {
    std::string owner, request_id;
    std::string sha256;  // of the spec as it was asked for; see Job::asked_sha256
    std::string spec_text;
  };
  // What is kept of a spec until the loop has answered.
  struct AskedSpec {
    std::string sha256, json;
  };
  // Against whose rate a Job counts: the caller's; of a caller that nobody knows, that of the owner
  // whom it names.
  static std::string CountedOwner(const Caller& caller, const std::string& owner);
  // Counts a Job that a call submits. ResourceExhausted: it is too many now. What was submitted
  // before is answered without it.
  absl::Status CountSubmit(const Caller& caller, const std::string& owner);
  // What a request asks for, with the owner that it means. spec_json: SpecToJson of its spec.
  static absl::StatusOr<Asked> AskedBy(const Caller& caller, const v1::SubmitRequest& request,
                                       const std::string& spec_json);
  // The spec of a request with what it says of other Jobs; PermissionDenied: not for that owner.
  absl::StatusOr<v1::JobSpec> Completed(const v1::JobSpec& spec, const std::string& owner) const;
  // Checks a spec, which may read files, and makes the Job of it.
  absl::StatusOr<Job> MakeJob(const v1::JobSpec& spec, const Asked& asked) const;
  Job JobOf(const CheckedSpec& checked, const Asked& asked, absl::Time now) const;
  // Does what Submit and Predict have in common, on a thread of checks_, and finishes the call.
  void SubmitSpec(v1::JobSpec spec, Asked asked, v1::SubmitReply* reply, Done done);
  void CheckAndSubmit(const v1::JobSpec& spec, const Asked& asked, v1::SubmitReply* reply,
                      const Done& done);
  // Checks an entry of a batch. A repeated one has its answer then, and no Job is made.
  // repeated: what its request has made; known: of this batch; the request outlives it.
  absl::StatusOr<Job> CheckEntry(const Caller& caller, const v1::SubmitRequest& request,
                                 const std::optional<KnownRequest>& repeated, CheckedSpecs& known,
                                 v1::SubmitOutcome* outcome) const;
  // What the requests of the entries have made before, as far as it can be read.
  std::vector<std::optional<KnownRequest>> FindRepeatedOf(
      const Caller& caller, const v1::SubmitBatchRequest& request) const;
  void CheckBatch(const Caller& caller, const v1::SubmitBatchRequest& request,
                  v1::SubmitBatchReply* reply, const Done& done);
  static void TakeOutcome(const Reply& answer, const AskedSpec& spec, v1::SubmitOutcome* outcome);
  // The Job that a Submit has made before, without a look at its files and its deadline; nullopt:
  // there is none.
  std::optional<Job> FindRepeated(const Asked& asked) const;
  // AlreadyExists: the Job of that request_id has another spec.
  static absl::Status CheckKnown(const Job& known, const AskedSpec& spec);
  // Checks a spec by its kind; one that uses another Job's models gets them here.
  absl::StatusOr<CheckedSpec> CheckKind(const v1::JobSpec& spec, absl::Time now) const;
  // The Job that serves rows with the models of `source`; a new one where there is none.
  // `deadline` is on the monotonic clock.
  absl::StatusOr<std::shared_ptr<const Job>> FindServer(const Job& source, absl::Duration deadline)
      ABSL_LOCKS_EXCLUDED(serving_);
  absl::StatusOr<std::shared_ptr<const Job>> StartServer(const Job& source,
                                                         absl::Duration deadline);
  int CountServers() const;
  // The Job that serves the models of the Job `source` already; null: there is none.
  std::shared_ptr<const Job> KnownServer(const std::string& source)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(serving_);
  // The event that the request asks for; InvalidArgument by the rules of a spec.
  absl::StatusOr<Update> CheckUpdate(const Caller& caller,
                                     const v1::UpdateJobRequest& request) const;
  absl::StatusOr<Propose> CheckProposal(const Caller& caller,
                                        const v1::ProposeTrialRequest& request) const;
  // The owner that a call names; empty: the caller, or the default one where nobody knows callers.
  // PermissionDenied: only an admin acts for others.
  static absl::StatusOr<std::string> OwnerOf(const Caller& caller, const std::string& named);
  // The spec that is asked for where it goes on from another Job; any other as it is.
  absl::StatusOr<v1::JobSpec> WithSource(const v1::JobSpec& spec) const;
  // With the ids of the Jobs that it is to run after. InvalidArgument: one is not known.
  absl::StatusOr<v1::JobSpec> WithAfter(v1::JobSpec spec) const;
  // Those of them that are not over. FailedPrecondition: one was to succeed and did not.
  absl::StatusOr<std::vector<std::string>> AwaitedBy(const v1::JobSpec& spec) const;
  void AddQuotas(const std::string& owner, const Spec& spec, v1::PlanReply* reply) const;
  // Makes the whole answer to GetJob.
  absl::StatusOr<v1::Job> DescribeWhole(const Job& job) const;
  absl::StatusOr<std::vector<MetricPoint>> CurveOf(const Job& job) const;
  v1::Job Describe(const Job& job, bool brief = false) const;
  // Whether there is no folder of that Job.
  bool FolderMissing(const std::string& id) const;
  // Whether a Job had files and somebody has removed its folder.
  bool FilesMissing(const Job& job) const;
  // FailedPrecondition: models or folds of that Job are to be used, and its folder is gone.
  absl::Status CheckFilesOf(const Job& job) const;
  // Answers a call that the loop replies to with a Job.
  ControlLoop::Answer JobAnswer(v1::Job* reply, Done done) const;

  static constexpr int kCheckThreads = 4;

  const std::string state_dir_;
  ControlLoop* const loop_;
  Store* const store_;
  Intake* const intake_;
  GrpcWorkerGateway* const workers_;
  Collector* const collector_;
  SubmitRate submit_rate_;
  Receivers uploads_;
  JobMemo memo_;
  absl::Mutex serving_;
  // Jobs that serve, by the Job whose models they hold; some may be over.
  std::map<std::string, std::string> servers_ ABSL_GUARDED_BY(serving_);
  // Jobs whose models some caller is about to have served.
  std::set<std::string> starting_ ABSL_GUARDED_BY(serving_);
  TimedCondVar started_;  // after a change of starting_
  // Checks of specs read the users' files, which may be large or hang: the callers' threads must
  // not wait for them. A check that has begun finishes its call, so this object outlives the
  // servers.
  PublishPool checks_{kCheckThreads};
};

}  // namespace traind
