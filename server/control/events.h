// Events that go into the control core, and commands that come out of it.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "common/facts/facts.h"
#include "common/publish/prediction.h"
#include "server/domain/job.h"
#include "server/domain/trained_fold.h"
#include "server/domain/worker_mode.h"
#include "server/store/store.h"

namespace traind {

// Names a waiting caller; the shell makes it and gets it back in a Reply.
using CallId = uint64_t;

// ---- in ---------------------------------------------------------------------

// A Job that intake has checked: id, owner, request_id, spec*, warnings are set.
struct Submit {
  CallId call = 0;
  Job job;
  // Submits of one batch have the same, which is not 0, and follow each other. Limits of Jobs take
  // all of them or none.
  CallId batch = 0;
};
struct Finish {
  CallId call = 0;
  std::string job;
};
struct Cancel {
  CallId call = 0;
  std::string job;
};
// Ranks save a checkpoint and go; nothing starts until Resume. The clock goes on.
struct Pause {
  CallId call = 0;
  std::string job;
};
struct Resume {
  CallId call = 0;
  std::string job;
};
// Unset fields leave the Job as it is. With both, the earlier end counts.
struct Update {
  CallId call = 0;
  std::string job;
  std::optional<absl::Duration> budget;  // from acceptance
  std::optional<absl::Time> deadline;
  std::optional<int> priority;
  std::map<std::string, std::string> set_labels;
  std::vector<std::string> remove_labels;
};
// Settings for the next trial of a Job that asks for them, which were checked against its space.
struct Propose {
  CallId call = 0;
  std::string job;
  std::string request_id;  // may be empty
  std::shared_ptr<const Settings> settings;
};

// Made, or in place of the one that the subject has. history: what was used in the
// period before now. known: that owner exists, or is to.
struct SetQuota {
  CallId call = 0;
  Quota quota;
  bool known = true;
  std::vector<AttemptUsage> history;
};
struct RemoveQuota {
  CallId call = 0;
  QuotaSubject subject;
};
// mode: not kLeaving. grace: of kDraining.
struct UpdateWorker {
  CallId call = 0;
  std::string worker;
  WorkerMode mode = WorkerMode::kNone;
  absl::Duration grace;
};
struct ListQuotas {
  CallId call = 0;
};

// Retention does not delete a pinned Job; the user still may.
struct Pin {
  CallId call = 0;
  std::string job;
  bool pinned = true;
};
// From now on the Job, which is over, exists only to be deleted. attempts: all that it has had.
struct DeleteJob {
  CallId call = 0;
  std::string job;
  std::vector<int64_t> attempts;
};
// Some of the rows of a Job go; see Mutations::purges and Mutations::forgotten.
struct PurgeJob {
  CallId call = 0;
  std::string job;
};
struct ForgetHistory {
  CallId call = 0;
  std::string job;
};
// A file of the Job does not fit its digest; the Job may be over.
struct FileDamaged {
  std::string job;
  std::string detail;  // the file and what became of it
};

// A Worker's stream. `session` grows with every stream that is opened, so that the
// end of an old stream does not hide a new one.
struct WorkerAttached {
  std::string worker;
  std::string boot;  // another one than before: a new process, its old Attempts are dead
  uint64_t session = 0;
  std::string hostname;
  int64_t pid = 0;
  std::vector<Slot> slots;
  std::vector<int64_t> running_attempts;
  bool own_folder = false;  // its state folder is not traind's
  // At which the Ranks of other Workers reach its own; empty: it takes no part in gangs that span
  // Workers.
  std::string address;
  std::set<std::string> labels = {};  // "rack=a"
};
struct WorkerHeartbeat {
  std::string worker;
  uint64_t session = 0;
  std::vector<int64_t> running_attempts;
  bool leaving = false;  // it was told to stop
};
struct WorkerDetached {
  std::string worker;
  uint64_t session = 0;
};
// The process is known to be dead (standalone: its lock is free). session: the newest stream of
// all Workers when that was seen; a later one is that of another process.
struct WorkerDied {
  std::string worker;
  uint64_t session = 0;
};

// A part of a gang that spans Workers waits for the others. It is told again after a reconnect.
struct GangReady {
  std::string worker;
  uint64_t session = 0;
  int64_t attempt = 0;
  int port = 0;  // free at the Worker, for rank 0
};

struct WorkerFact {
  std::string worker;
  uint64_t session = 0;
  int64_t sequence = 0;  // 0: may be lost, wants no Ack
  int64_t attempt = 0;   // 0: not about one
  // None: a newer Worker tells what this traind does not know. Only acknowledged, or the Worker
  // would repeat it for ever.
  std::optional<facts::Fact> fact;
};

// A checkpoint that was found on the disk when traind started: an Attempt of which traind thinks
// that it runs has saved it, and perhaps both ended before its Worker told so.
struct CheckpointFound {
  int64_t attempt = 0;
  facts::CheckpointSaved checkpoint;
};

// The answer to a PublishCommand; also made when a Worker published by itself.
struct Published {
  std::string job;
  absl::StatusOr<PublishedPrediction> result;
  // Not the answer to a PublishCommand: read from disk, or made by a Worker.
  bool unasked = false;
};

// The answer to a ReuseCommand: folds whose files lie in the Job's own folder now.
struct Reused {
  std::string job;
  absl::StatusOr<std::vector<TrainedFold>> folds;
};

// SIGTERM: nothing starts any more. In standalone the Worker stops everything, keeps what there is
// and ends; Workers of a cluster go on.
struct ShutdownRequested {};

using Event =
    std::variant<Submit, Finish, Cancel, Pause, Resume, Update, Propose, SetQuota, RemoveQuota,
                 ListQuotas, UpdateWorker, Pin, DeleteJob, PurgeJob, ForgetHistory, FileDamaged,
                 WorkerAttached, WorkerHeartbeat, WorkerDetached, WorkerDied, GangReady, WorkerFact,
                 CheckpointFound, Published, Reused, ShutdownRequested>;

// ---- out --------------------------------------------------------------------

struct StartCommand {
  std::string worker;
  int64_t attempt = 0;
  std::shared_ptr<const Job> job;
  TaskKind kind = TaskKind::kTrain;
  int fold = -1;
  int trial = 0;
  int seed = 0;
  std::vector<int> slots;
  // The whole gang has more ranks than slots here where it spans Workers.
  int world_size = 1;
  int first_rank = 0;
  absl::Time deadline = absl::InfiniteFuture();  // sent as what remains
  absl::Time stop_at = absl::InfiniteFuture();
  int epochs = 0;
  double row_share = 1;  // of the training rows, that an epoch sees
  std::string resume;    // manifest; empty: from the start
  int batch = 0;         // rows of a pass; 0: as the spec says
  bool plan_cut = false;
};
struct StopCommand {
  std::string worker;
  int64_t attempt = 0;
  StopMode mode = StopMode::kAbort;
  StopReason reason = StopReason::kNone;
  std::string why;  // for people
};
// All parts of a gang wait: rank 0 listens there.
struct MeetCommand {
  std::string worker;
  int64_t attempt = 0;
  std::string host;
  int port = 0;
};
struct ReplanCommand {
  std::string worker;
  int64_t attempt = 0;
  int epochs = 0;  // 0, and row_share 0: as before
  double row_share = 0;
  absl::Time stop_at = absl::InfiniteFuture();
  absl::Time deadline = absl::InfiniteFuture();  // the Job's
  bool plan_cut = false;
};
// Every fact of that session up to sequence is durable once this turn is committed.
struct AckCommand {
  std::string worker;
  uint64_t session = 0;
  int64_t sequence = 0;
};
struct ShutdownCommand {
  std::string worker;
};
// Without request.table nothing is to be made: the standing Prediction is to be read
// (ReadStandingPrediction) and told.
struct PublishCommand {
  std::string job;
  PublishRequest request;  // state_dir is filled in by the shell
  bool final = false;
};
// Folds that earlier Jobs have trained are to be found: those of the Job spec.from, or
// of all with its cache_key, on data of that content.
struct ReuseCommand {
  std::string job;
  Spec spec;
  std::string content_sha256;
};
struct Reply {
  CallId call = 0;
  absl::Status status;
  std::shared_ptr<const Job> job;  // where status is OK or ALREADY_EXISTS
  bool created = false;
  std::vector<QuotaState> quotas;  // of SetQuota the one, of ListQuotas all
  int trial = 0;                   // of Propose: its number
};

// The shell commits `mutations` first; only then it does the rest, in this order.
struct Turn {
  Mutations mutations;
  std::vector<AckCommand> acks;
  std::vector<StartCommand> starts;
  std::vector<StopCommand> stops;
  std::vector<MeetCommand> meets;
  std::vector<ReplanCommand> replans;
  std::vector<ShutdownCommand> shutdowns;
  std::vector<WorkerNote> notes;  // of Workers that look different now, for those who list them
  std::vector<PublishCommand> publishes;
  std::vector<ReuseCommand> reuses;
  // Jobs that are over, now or before: nobody may publish for them any more, and the Prediction
  // that the store has of them stands.
  std::vector<std::string> ended;
  std::vector<Reply> replies;
  // Jobs that look different now, for those who watch: also those with nothing to
  // store (live figures).
  std::vector<std::shared_ptr<const Job>> changed;
  absl::Time next_wakeup = absl::InfiniteFuture();
};

}  // namespace traind
