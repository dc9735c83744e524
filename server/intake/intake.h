// Turns a submitted spec into a Job, or says what is wrong with it and where.
#pragma once

#include <absl/base/thread_annotations.h>
#include <absl/random/random.h>
#include <absl/status/statusor.h>
#include <absl/synchronization/mutex.h>
#include <absl/time/time.h>

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "proto/job.pb.h"
#include "server/domain/job.h"
#include "server/intake/data_files.h"
#include "server/intake/epoch_work.h"
#include "server/intake/media_load.h"

namespace traind {

// A spec that may become a Job.
struct CheckedSpec {
  v1::JobSpec resolved;  // defaults filled in, paths resolved
  Spec spec;             // the part on which the core decides
  std::string json;      // canonical text of resolved
  std::string sha256;    // of json
  std::vector<std::string> warnings;
  std::vector<std::string> preset_fields;  // see ApplyPreset
  TaskKind kind = TaskKind::kPrepare;      // of the Job's first task
  // The estimated time to a first Prediction, which rule B12 uses.
  absl::Duration floor_time;
  MediaLoad train_media;  // files of the training rows
  EpochWork work;         // of a Job that trains
};

// The files of rows that a spec names.
struct SpecFiles {
  std::shared_ptr<const DataFile> train;
  std::shared_ptr<const DataFile> test;  // nullptr: there is none
};

// Checks specs and makes Jobs of them.
// Threads: safe.
class Intake {
 public:
  // scripts: SHA-256 of the users' own models that may run here; "any" allows all.
  // programs: Jobs may run programs of their users; program_owners: Jobs of these owners alone;
  // empty: of all. uploads: the folder with what clients have sent, with links resolved; empty:
  // there is none.
  explicit Intake(std::vector<std::string> data_roots, std::set<std::string> scripts = {},
                  bool programs = false, std::set<std::string> program_owners = {},
                  std::string uploads = "")
      : files_(std::move(data_roots)),
        scripts_(std::move(scripts)),
        programs_(programs),
        program_owners_(std::move(program_owners)),
        uploads_(std::move(uploads)) {}

  // Errors: PermissionDenied: the spec has a program, which this owner may not run.
  absl::Status CheckOwner(const v1::JobSpec& spec, const std::string& owner) const;

  // Checks a spec. InvalidArgument: every mistake on a line of its own, "data.target: ...".
  // FailedPrecondition: no floor could be ready before the deadline (rule B12); the message has a
  // counter-offer. It examines sizes, headers and the first 1 MiB of the files; PREPARE finds what
  // only a full read shows.
  absl::StatusOr<CheckedSpec> Check(const v1::JobSpec& spec, absl::Time now);

  // Checks a spec with `predict` or `serve`, which names the Job `source`; `models` are that Job's
  // models. sha256 does not depend on them. Errors: as for Check.
  absl::StatusOr<CheckedSpec> CheckInference(const v1::JobSpec& spec, const Job& source,
                                             const v1::ModelSet& models, absl::Time now);

  // Makes a Job accepted at `now`, with a unique id (name and six characters).
  Job MakeJob(const CheckedSpec& checked, const std::string& owner, const std::string& request_id,
              const std::string& spec_text, absl::Time now) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  // Errors: PermissionDenied: the spec has a program, which the operator does not allow.
  absl::Status CheckAllowed(const v1::JobSpec& spec) const;
  absl::StatusOr<CheckedSpec> CheckProgram(const v1::JobSpec& spec, absl::Time now) const;
  absl::Status CheckScript(v1::ScriptSpec& script);
  // The steps of Check. Fills in the task's type, the preset's values and the defaults.
  absl::Status Resolve(const v1::JobSpec& spec, CheckedSpec& checked);
  // Looks at all files that the spec names; `resolved` gets the paths of those besides the data.
  absl::StatusOr<SpecFiles> LookAtFiles(const v1::JobSpec& spec, v1::JobSpec& resolved);
  absl::Status CheckData(const SpecFiles& files, CheckedSpec& checked);

  DataFiles files_;
  const std::set<std::string> scripts_;
  const bool programs_;
  const std::set<std::string> program_owners_;
  const std::string uploads_;
  absl::Mutex mutex_;
  absl::BitGen random_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace traind
