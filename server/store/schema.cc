#include "server/store/schema.h"

#include <absl/strings/str_cat.h>

#include <cstdint>

#include "common/base/status_macros.h"

namespace traind {
namespace {

// Points in time are _ms of Unix time; NULL: not yet, or never. Enumerations have the numbers of
// proto/job.proto. `job` refers to jobs.number, which users never see. Lists that are never
// searched are JSON. A measurement from a Worker may be NULL: not a number.
constexpr char kVersion1[] = R"sql(
CREATE TABLE jobs(
  number INTEGER PRIMARY KEY AUTOINCREMENT,  -- in the order of acceptance
  id TEXT NOT NULL UNIQUE,
  owner TEXT NOT NULL,
  request_id TEXT NOT NULL,
  name TEXT NOT NULL,
  spec_sha256 TEXT NOT NULL,
  spec_json TEXT NOT NULL,
  spec_text TEXT NOT NULL,
  accepted_at_ms INTEGER NOT NULL,
  metric TEXT NOT NULL,
  higher_is_better INTEGER NOT NULL,
  folds INTEGER NOT NULL,
  epochs INTEGER NOT NULL,
  patience INTEGER NOT NULL,
  slots INTEGER NOT NULL,
  device TEXT NOT NULL,
  batch INTEGER NOT NULL,
  precision TEXT NOT NULL,
  checkpoint_every_ms INTEGER NOT NULL,
  priority INTEGER NOT NULL,
  has_test INTEGER NOT NULL,
  train_bytes INTEGER NOT NULL,
  test_bytes INTEGER NOT NULL,
  budget_ms INTEGER,
  spec_deadline_ms INTEGER,
  policy INTEGER NOT NULL,
  share_plan REAL NOT NULL,
  share_first_fold REAL NOT NULL,
  share_reserve REAL NOT NULL,
  share_stop REAL NOT NULL,
  -- What follows changes until the Job is terminal.
  state INTEGER NOT NULL,
  end_reason INTEGER NOT NULL,
  end_message TEXT NOT NULL,
  started_at_ms INTEGER,
  deadline_ms INTEGER,
  finished_at_ms INTEGER,
  finish_requested INTEGER NOT NULL,
  cancel_requested INTEGER NOT NULL,
  floor_model TEXT NOT NULL,
  floor_score REAL,
  warnings_json TEXT NOT NULL,
  prediction_number INTEGER,                 -- the one that stands
  version INTEGER NOT NULL
);
CREATE UNIQUE INDEX jobs_by_request ON jobs(owner, request_id) WHERE request_id != '';
CREATE INDEX jobs_by_name ON jobs(name, number);
CREATE INDEX jobs_active ON jobs(number) WHERE state NOT IN (5, 6, 7);
CREATE INDEX jobs_by_size ON jobs(train_bytes, number) WHERE state = 5;

CREATE TABLE job_labels(
  job INTEGER NOT NULL REFERENCES jobs(number),
  key TEXT NOT NULL,
  value TEXT NOT NULL,
  PRIMARY KEY(job, key)
) WITHOUT ROWID;
CREATE INDEX job_labels_by_value ON job_labels(key, value, job);

-- Append-only.
CREATE TABLE job_events(
  job INTEGER NOT NULL REFERENCES jobs(number),
  position INTEGER NOT NULL,
  at_ms INTEGER NOT NULL,
  kind TEXT NOT NULL,
  detail TEXT NOT NULL,
  PRIMARY KEY(job, position)
) WITHOUT ROWID;

CREATE TABLE decisions(
  job INTEGER NOT NULL REFERENCES jobs(number),
  position INTEGER NOT NULL,
  at_ms INTEGER NOT NULL,
  rule TEXT NOT NULL,
  cause TEXT NOT NULL,
  from_text TEXT NOT NULL,
  to_text TEXT NOT NULL,
  PRIMARY KEY(job, position)
) WITHOUT ROWID;

CREATE TABLE plans(
  job INTEGER NOT NULL REFERENCES jobs(number),
  position INTEGER NOT NULL,
  revision INTEGER NOT NULL,
  folds INTEGER NOT NULL,
  epochs INTEGER NOT NULL,
  ranks INTEGER NOT NULL,
  parallel_folds INTEGER NOT NULL,
  step_s REAL,
  estimate_ms INTEGER,
  reserve_ms INTEGER NOT NULL,
  at_ms INTEGER NOT NULL,
  PRIMARY KEY(job, position)
) WITHOUT ROWID;

CREATE TABLE checkpoints(
  job INTEGER NOT NULL REFERENCES jobs(number),
  attempt INTEGER NOT NULL,
  step INTEGER NOT NULL,
  fold INTEGER NOT NULL,
  epoch REAL,
  manifest TEXT NOT NULL,
  sha256 TEXT NOT NULL,
  bytes INTEGER NOT NULL,
  best_metric REAL,
  at_ms INTEGER NOT NULL,
  PRIMARY KEY(job, attempt, step)
) WITHOUT ROWID;

CREATE TABLE tasks(
  job INTEGER NOT NULL REFERENCES jobs(number),
  position INTEGER NOT NULL,                 -- as in Job::tasks
  kind INTEGER NOT NULL,
  fold INTEGER NOT NULL,
  trial INTEGER NOT NULL,
  state INTEGER NOT NULL,
  attempt INTEGER NOT NULL,
  attempts INTEGER NOT NULL,
  failures INTEGER NOT NULL,
  losses INTEGER NOT NULL,
  not_before_ms INTEGER,
  epochs_planned REAL,
  epochs_done REAL,
  score REAL,
  message TEXT NOT NULL,
  step_s REAL,
  step_p90_s REAL,
  evaluate_s REAL,
  predict_s REAL,
  epoch_s REAL,
  steps_per_epoch INTEGER NOT NULL,
  member_json TEXT NOT NULL,                 -- empty: no predictions yet
  checkpoint_attempt INTEGER,                -- the last committed
  checkpoint_step INTEGER,
  PRIMARY KEY(job, position),
  FOREIGN KEY(job, checkpoint_attempt, checkpoint_step)
    REFERENCES checkpoints(job, attempt, step)
) WITHOUT ROWID;

CREATE TABLE attempts(
  job INTEGER NOT NULL REFERENCES jobs(number),
  position INTEGER NOT NULL,
  id INTEGER NOT NULL UNIQUE,                -- the fencing token; store-wide
  kind INTEGER NOT NULL,
  fold INTEGER NOT NULL,
  worker TEXT NOT NULL,
  slots_json TEXT NOT NULL,
  started_at_ms INTEGER NOT NULL,
  ended_at_ms INTEGER,
  end_reason INTEGER NOT NULL,
  message TEXT NOT NULL,
  PRIMARY KEY(job, position)
) WITHOUT ROWID;

CREATE TABLE predictions(
  job INTEGER NOT NULL REFERENCES jobs(number),
  number INTEGER NOT NULL,
  path TEXT NOT NULL,
  sha256 TEXT NOT NULL,
  bytes INTEGER NOT NULL,
  rows INTEGER NOT NULL,
  quality INTEGER NOT NULL,
  members_json TEXT NOT NULL,
  left_out_json TEXT NOT NULL,
  oof_score REAL,
  comparable INTEGER NOT NULL,
  test_score REAL,
  floor_score REAL,
  at_ms INTEGER NOT NULL,
  PRIMARY KEY(job, number)
) WITHOUT ROWID;

-- Files that a Job made; paths are relative to the Job's folder.
CREATE TABLE artifacts(
  job INTEGER NOT NULL REFERENCES jobs(number),
  path TEXT NOT NULL,
  sha256 TEXT NOT NULL,
  bytes INTEGER,                             -- NULL: not told
  fold INTEGER,                              -- NULL: of the whole Job
  attempt INTEGER,
  PRIMARY KEY(job, path)
) WITHOUT ROWID;

-- What PREPARE read for a Job.
CREATE TABLE datasets(
  job INTEGER PRIMARY KEY REFERENCES jobs(number),
  table_path TEXT NOT NULL,                  -- relative to the state folder
  content_sha256 TEXT NOT NULL,
  train_rows INTEGER NOT NULL,
  test_rows INTEGER NOT NULL,
  features INTEGER NOT NULL,
  classes INTEGER NOT NULL
);
CREATE INDEX datasets_by_content ON datasets(content_sha256, job);

CREATE TABLE metrics(
  job INTEGER NOT NULL REFERENCES jobs(number),
  sequence INTEGER NOT NULL,
  at_ms INTEGER NOT NULL,
  fold INTEGER NOT NULL,
  attempt INTEGER NOT NULL,
  step INTEGER NOT NULL,
  epoch REAL,
  name TEXT NOT NULL,
  value REAL,                                -- NULL: not a number
  PRIMARY KEY(job, sequence)
) WITHOUT ROWID;

CREATE TABLE workers(
  id TEXT PRIMARY KEY,
  hostname TEXT NOT NULL,
  last_seen_ms INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE devices(
  worker TEXT NOT NULL REFERENCES workers(id),
  slot INTEGER NOT NULL,
  device TEXT NOT NULL,
  name TEXT NOT NULL,
  uuid TEXT NOT NULL,
  memory_bytes INTEGER NOT NULL,
  PRIMARY KEY(worker, slot)
) WITHOUT ROWID;

-- One row: what belongs to the whole store.
CREATE TABLE totals(
  one INTEGER PRIMARY KEY CHECK(one = 1),
  last_attempt INTEGER NOT NULL,
  last_seen_ms INTEGER NOT NULL
);
)sql";

// Adds what reuse by other Jobs needs, and where a fold's time went.
constexpr char kVersion2[] = R"sql(
ALTER TABLE jobs ADD COLUMN reserve_margin REAL NOT NULL DEFAULT 1.3;
ALTER TABLE jobs ADD COLUMN reserve_least_ms INTEGER NOT NULL DEFAULT 400;
ALTER TABLE jobs ADD COLUMN cache_key TEXT NOT NULL DEFAULT '';  -- empty: gives nothing
ALTER TABLE jobs ADD COLUMN cache_read INTEGER NOT NULL DEFAULT 0;
ALTER TABLE jobs ADD COLUMN from_job TEXT NOT NULL DEFAULT '';   -- jobs.id
ALTER TABLE jobs ADD COLUMN publish_s REAL NOT NULL DEFAULT 0;
CREATE INDEX jobs_by_cache_key ON jobs(cache_key, number) WHERE cache_key != '';

ALTER TABLE tasks ADD COLUMN probe_s REAL NOT NULL DEFAULT 0;
ALTER TABLE tasks ADD COLUMN validate_all_s REAL NOT NULL DEFAULT 0;
ALTER TABLE tasks ADD COLUMN predict_all_s REAL NOT NULL DEFAULT 0;
ALTER TABLE tasks ADD COLUMN from_job TEXT NOT NULL DEFAULT '';  -- jobs.id
ALTER TABLE tasks ADD COLUMN reused INTEGER NOT NULL DEFAULT 0;  -- its predictions are that Job's

ALTER TABLE decisions ADD COLUMN effect TEXT NOT NULL DEFAULT '';
)sql";

// Adds quotas; their usage is in the record of Attempts.
constexpr char kVersion3[] = R"sql(
CREATE TABLE quotas(
  owner TEXT NOT NULL,                       -- one of the two is empty
  label TEXT NOT NULL,                       -- key=value
  allowance_ms INTEGER NOT NULL,             -- of slots
  period_ms INTEGER NOT NULL,
  rolling INTEGER NOT NULL,
  since_ms INTEGER NOT NULL,
  PRIMARY KEY(owner, label)
) WITHOUT ROWID;
CREATE INDEX attempts_by_end ON attempts(ended_at_ms) WHERE kind = 2;
ALTER TABLE jobs ADD COLUMN quota_reached INTEGER NOT NULL DEFAULT 0;
)sql";

// Adds shares of the training rows, the settings of a retry, and the key by which Jobs share
// measured speeds.
constexpr char kVersion4[] = R"sql(
ALTER TABLE jobs ADD COLUMN subsample INTEGER NOT NULL DEFAULT 0;
ALTER TABLE plans ADD COLUMN row_share REAL NOT NULL DEFAULT 1;
ALTER TABLE tasks ADD COLUMN row_share REAL NOT NULL DEFAULT 1;
ALTER TABLE tasks ADD COLUMN retry_batch INTEGER NOT NULL DEFAULT 0;
ALTER TABLE jobs ADD COLUMN speed_key TEXT NOT NULL DEFAULT '';  -- empty: not known
)sql";

// Adds extra seeds of folds.
constexpr char kVersion5[] = R"sql(
ALTER TABLE jobs ADD COLUMN seeds INTEGER NOT NULL DEFAULT 1;
ALTER TABLE tasks ADD COLUMN seed INTEGER NOT NULL DEFAULT 0;
ALTER TABLE attempts ADD COLUMN seed INTEGER NOT NULL DEFAULT 0;
ALTER TABLE checkpoints ADD COLUMN seed INTEGER NOT NULL DEFAULT 0;
ALTER TABLE plans ADD COLUMN models INTEGER NOT NULL DEFAULT 0;
UPDATE plans SET models = folds;
)sql";

// Adds the step at which an Attempt's training began; -1: unknown.
constexpr char kVersion6[] = R"sql(
ALTER TABLE attempts ADD COLUMN first_step INTEGER NOT NULL DEFAULT -1;
)sql";

// Adds the trials of a Job, and which of them Attempts and checkpoints are of.
constexpr char kVersion7[] = R"sql(
ALTER TABLE jobs ADD COLUMN trials_json TEXT NOT NULL DEFAULT '[]';
ALTER TABLE attempts ADD COLUMN trial INTEGER NOT NULL DEFAULT 0;
ALTER TABLE checkpoints ADD COLUMN trial INTEGER NOT NULL DEFAULT 0;
)sql";

// Adds what retention needs: pins, deletions in steps, and whose models a Job uses.
constexpr char kVersion8[] = R"sql(
ALTER TABLE jobs ADD COLUMN pinned INTEGER NOT NULL DEFAULT 0;
ALTER TABLE jobs ADD COLUMN deleting INTEGER NOT NULL DEFAULT 0;   -- 2: only its usage is left
ALTER TABLE jobs ADD COLUMN models_from TEXT NOT NULL DEFAULT '';  -- jobs.id
UPDATE jobs SET models_from = COALESCE(json_extract(spec_json, '$.predict.from'),
  json_extract(spec_json, '$.serve.from'), '') WHERE json_valid(spec_json);
CREATE INDEX jobs_by_deleting ON jobs(number) WHERE deleting != 0;
CREATE TABLE deleted_jobs(
  number INTEGER PRIMARY KEY,                -- in the order of deletion
  id TEXT NOT NULL UNIQUE,
  at_ms INTEGER NOT NULL
);
)sql";

// Lets lists of Jobs in some states be read without a look at the others; adds the digest by which
// a repeated Submit is recognized.
constexpr char kVersion9[] = R"sql(
ALTER TABLE jobs ADD COLUMN asked_sha256 TEXT NOT NULL DEFAULT '';
CREATE INDEX jobs_by_state ON jobs(state, number);
)sql";

// Adds how the settings of a search are drawn. They stand with the trials once they are.
constexpr char kVersion10[] = R"sql(
ALTER TABLE jobs ADD COLUMN search_json TEXT NOT NULL DEFAULT '{}';
)sql";

// Chains the events of a Job by digests, and numbers the durable commits.
constexpr char kVersion11[] = R"sql(
ALTER TABLE job_events ADD COLUMN chain TEXT NOT NULL DEFAULT '';  -- empty: older than the chain
ALTER TABLE totals ADD COLUMN revision INTEGER NOT NULL DEFAULT 0;
ALTER TABLE totals ADD COLUMN chain TEXT NOT NULL DEFAULT '';
)sql";

// Adds what an Attempt took of its machine (common/facts/facts.h, Resources).
constexpr char kVersion12[] = R"sql(
ALTER TABLE attempts ADD COLUMN resources TEXT NOT NULL DEFAULT '';  -- its summary
ALTER TABLE attempts ADD COLUMN measured_s REAL DEFAULT 0;
ALTER TABLE attempts ADD COLUMN measured_epochs REAL DEFAULT 0;
ALTER TABLE attempts ADD COLUMN utilisation REAL DEFAULT -1;
ALTER TABLE attempts ADD COLUMN advice TEXT NOT NULL DEFAULT '';
ALTER TABLE attempts ADD COLUMN cpu_s REAL DEFAULT 0;
ALTER TABLE attempts ADD COLUMN energy_joules REAL DEFAULT -1;
ALTER TABLE attempts ADD COLUMN peak_memory_bytes INTEGER NOT NULL DEFAULT 0;
ALTER TABLE attempts ADD COLUMN peak_device_bytes INTEGER NOT NULL DEFAULT 0;
)sql";

// Adds Jobs that wait for the ends of others.
constexpr char kVersion13[] = R"sql(
ALTER TABLE jobs ADD COLUMN after_any_end INTEGER NOT NULL DEFAULT 0;
ALTER TABLE jobs ADD COLUMN after_json TEXT NOT NULL DEFAULT '[]';  -- ids of Jobs that it waits for
ALTER TABLE jobs ADD COLUMN waited_ms INTEGER NOT NULL DEFAULT 0;
)sql";

// Adds Workers that take nothing new.
constexpr char kVersion14[] = R"sql(
ALTER TABLE workers ADD COLUMN mode INTEGER NOT NULL DEFAULT 0;  -- WorkerMode
ALTER TABLE workers ADD COLUMN drain_at_ms INTEGER;              -- NULL: it is not drained
)sql";

// Adds whether an Attempt has told the importance of its columns (facts::Importance).
constexpr char kVersion15[] = R"sql(
ALTER TABLE attempts ADD COLUMN columns_told INTEGER NOT NULL DEFAULT 0;
)sql";

// Adds what a Job asks of its Workers besides slots (server/domain/constraints.h).
constexpr char kVersion16[] = R"sql(
ALTER TABLE jobs ADD COLUMN constraints_json TEXT NOT NULL DEFAULT '{}';
)sql";

// Adds the floor's weight in a Prediction, and how its quantiles score. From now on a task
// has a row only once it has changed (server/domain/first_tasks.h).
constexpr char kVersion17[] = R"sql(
ALTER TABLE predictions ADD COLUMN floor_weight REAL DEFAULT 0;
ALTER TABLE predictions ADD COLUMN quantile_scores_json TEXT NOT NULL DEFAULT '';  -- empty: none
)sql";

// Adds how long traind has waited for Workers, so that its next start does not wait as long again.
// From now on jobs.spec_json may be a BLOB that an earlier version cannot read (spec_text.h).
constexpr char kVersion18[] = R"sql(
ALTER TABLE workers ADD COLUMN silent_ms INTEGER NOT NULL DEFAULT 0;  -- WorkerNote::silent
ALTER TABLE totals ADD COLUMN awaited_ms INTEGER NOT NULL DEFAULT 0;  -- Snapshot::awaited
CREATE INDEX jobs_by_end ON jobs(finished_at_ms) WHERE finished_at_ms IS NOT NULL;
)sql";

// Adds which files travelled for an Attempt (facts::Transfers).
constexpr char kVersion19[] = R"sql(
ALTER TABLE attempts ADD COLUMN fetched_bytes INTEGER NOT NULL DEFAULT 0;
ALTER TABLE attempts ADD COLUMN fetch_s REAL DEFAULT 0;
ALTER TABLE attempts ADD COLUMN sent_bytes INTEGER NOT NULL DEFAULT 0;
ALTER TABLE attempts ADD COLUMN send_s REAL DEFAULT 0;
)sql";

constexpr const char* kMigrations[] = {kVersion1,  kVersion2,  kVersion3,  kVersion4,  kVersion5,
                                       kVersion6,  kVersion7,  kVersion8,  kVersion9,  kVersion10,
                                       kVersion11, kVersion12, kVersion13, kVersion14, kVersion15,
                                       kVersion16, kVersion17, kVersion18, kVersion19};

}  // namespace

absl::Span<const char* const> Migrations() { return kMigrations; }

absl::Status Migrate(sqlite::Connection& db, absl::Span<const char* const> migrations) {
  const auto newest = static_cast<int64_t>(migrations.size());
  int64_t version = 0;
  {
    sqlite::Query query = db.Select("PRAGMA user_version");
    if (query.Next()) query.Read(version);
    RETURN_IF_ERROR(query.status());
  }
  if (version < 0) {
    return absl::DataLossError(
        absl::StrCat("its header is damaged: it has schema version ", version));
  }
  if (version > newest) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the database has schema version ", version, ", this traind knows versions up to ", newest,
        ": start a newer traind, or use another state folder"));
  }
  for (; version < newest; ++version) {
    RETURN_IF_ERROR(db.Execute("BEGIN IMMEDIATE"));
    absl::Status status = db.Execute(migrations[version]);
    if (status.ok()) status = db.Execute(absl::StrCat("PRAGMA user_version = ", version + 1));
    if (status.ok()) status = db.Execute("COMMIT");
    if (!status.ok()) {
      if (db.in_transaction()) db.Execute("ROLLBACK").IgnoreError();
      return absl::Status(status.code(), absl::StrCat("migration to schema version ", version + 1,
                                                      ": ", status.message()));
    }
  }
  return absl::OkStatus();
}

}  // namespace traind
