// Carries files between this Worker's own state folder and traind's, off the event loop.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <sys/stat.h>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "worker/daemon/fetched_input.h"
#include "worker/daemon/mailbox.h"
#include "worker/daemon/remote_files.h"
#include "worker/daemon/task.h"

namespace traind::worker {

// The files that an Attempt has written and traind lacks.
struct SendRequest {
  int64_t attempt = 0;
  std::string job;
  TaskKind kind = TaskKind::kTrain;
  std::string table;              // of PREPARE, once it is written
  bool with_log = false;          // at the end
  std::string spec_json = {};     // of PREPARE
  std::string program_pack = {};  // of a program: where it packs what it resumes from
};

// Whether the task runs a program of the user, which reads his files itself.
bool RunsProgram(const TaskStart& task);

// Pairs of a path that a fetched file has here and the one that its user knows.
using PathNames = std::vector<std::pair<std::string, std::string>>;

// A transfer that fails because traind is away, or because bytes were lost, is tried again until
// it is stopped; what came over stays. Transfers of different Attempts run side by side.
// Threads: safe; has kThreads of its own.
class FileCarrier {
 public:
  static constexpr int kThreads = 4;

  struct Result {
    enum Kind { kCompared, kBrought, kSent } kind = kCompared;
    std::string job;    // kSent
    int published = 0;  // kSent: the number of the Prediction here that traind has got; 0: none
    int64_t attempt = 0;
    absl::Status status;
    int64_t bytes = 0;      // kBrought, kSent: that travelled
    bool shared = false;    // kCompared
    std::string spec_json;  // kBrought: with the paths that the files have here
    PathNames names;        // kBrought
  };

  // state_dir: absolute. max_bytes: what the folder may hold besides the files of Attempts here.
  FileCarrier(std::string state_dir, std::unique_ptr<RemoteFiles> remote, int64_t max_bytes);
  // Breaks off what runs.
  ~FileCarrier();

  Mailbox<Result>& results() { return results_; }

  // Finds out whether this state folder is traind's, by a file that traind is asked for.
  void Compare();
  // Fetches what the task reads. FailedPrecondition: the Job is over; NotFound, PermissionDenied:
  // a file of it cannot be read there.
  void Bring(const TaskStart& task);
  void StopBringing(int64_t attempt);
  // Sends what has changed since the last time. Other errors than FailedPrecondition (the Job is
  // over) are faults of this machine or of traind's.
  void Send(const SendRequest& request);
  // Sends what the Attempt's program resumes from, if that is new, in a small share of the time and
  // beside all else; a Send of the Attempt's last files breaks it off, and Finish() takes it up
  // again. Nobody waits for it.
  void SendProgramPack(const SendRequest& request);
  // The Attempt will send nothing more. busy: Jobs with Attempts here, whose files stay.
  void Finish(int64_t attempt, std::set<std::string> busy);

 private:
  using Work = std::function<void()>;
  // Tells a file's state apart from an earlier one: inode, size, time of change.
  using Version = std::tuple<uint64_t, int64_t, int64_t>;
  static Version VersionOf(const struct stat& info);

  void Run();
  // Has the work done on a thread; `stop` ends it early.
  void Add(std::function<void(TransferStop&)> work,
           std::shared_ptr<TransferStop> stop = std::make_shared<TransferStop>());
  // Does it again, at growing distances, until it has succeeded, cannot, or is stopped.
  absl::Status Insist(const std::function<absl::Status()>& act, const TransferStop& stop);

  absl::StatusOr<bool> CompareNow(TransferStop& stop) const;
  // Both fill in what the result tells besides the status.
  absl::Status BringNow(const TaskStart& task, TransferStop& stop, Result& result);
  // What an Attempt on another Worker has left for the program to resume from.
  absl::Status BringProgramPack(const TaskStart& task, TransferStop& stop, Result& result) const;
  absl::Status BringData(const TaskStart& task, TransferStop& stop, Result& result);
  absl::Status BringFold(const TaskStart& task, TransferStop& stop, Result& result) const;
  // A program's folds all read what the Job's first task here has read, whatever became of it
  // since: results may come to the same folder.
  absl::StatusOr<FetchedInput> BringInput(const TaskStart& task, const NamedFile& file,
                                          TransferStop& stop, Result& result);
  // The manifest of the standing Prediction of the Job whose models are used.
  absl::Status BringStanding(const TaskStart& task, const std::string& from, TransferStop& stop,
                             Result& result) const;
  absl::Status BringModels(const TaskStart& task, TransferStop& stop, Result& result) const;
  // owner: the Job of the file; another one's where models are used.
  absl::Status FetchInState(const std::string& job, const std::string& owner,
                            const std::string& path, TransferStop& stop, Result& result) const;
  // Packs the Prediction that a Rank has made here. Returns its number; 0: there is no new one.
  absl::StatusOr<int> PackPrediction(const SendRequest& request);
  // Packs what a program has left here as its answer, if that has changed.
  absl::Status PackResults(const SendRequest& request);
  // Starts those that are new and may go now.
  void StartPackSends();
  void SendPackNow(const SendRequest& request, TransferStop& stop);
  bool HasSent(int64_t attempt, const std::string& path, const struct stat& info) const;
  absl::Status SendNow(const SendRequest& request, TransferStop& stop, Result& result);
  std::vector<std::string> PathsToSend(const SendRequest& request) const;
  absl::Status SendOne(const SendRequest& request, const std::string& path, TransferStop& stop,
                       Result& result);
  std::string InState(const std::string& path) const { return state_dir_ + "/" + path; }

  const std::string state_dir_;
  const std::unique_ptr<RemoteFiles> remote_;
  const int64_t max_bytes_;
  Mailbox<Result> results_;
  // Not absl::Mutex: its timed waits follow the wall clock, which may be put back.
  std::mutex mutex_;
  std::condition_variable changed_;  // stop_ or work_
  // Guarded by mutex_, down to the threads.
  bool stop_ = false;
  std::deque<Work> work_;
  std::set<std::shared_ptr<TransferStop>> running_;
  std::map<int64_t, std::shared_ptr<TransferStop>> bringing_;
  // The versions that traind has, by Attempt and path.
  std::map<int64_t, std::map<std::string, Version>> sent_;
  std::map<std::string, std::map<std::string, FetchedInput>> inputs_;  // by Job and field
  std::map<int64_t, int> published_;  // by Attempt: the Prediction that traind has
  // By Attempt: the send of what its program resumes from.
  struct PackSend {
    SendRequest request;
    std::shared_ptr<TransferStop> stop;  // null: none is under way
    bool last = false;                   // the Attempt is over
    std::chrono::steady_clock::time_point not_before;
  };
  std::map<int64_t, PackSend> pack_sends_;
  // By Attempt and name: the results of a program, as last packed.
  std::map<int64_t, std::map<std::string, Version>> packed_;
  std::vector<std::thread> threads_;
};

}  // namespace traind::worker
