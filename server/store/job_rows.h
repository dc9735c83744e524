// Reads and writes a Job as rows of the database (schema.cc).
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "server/domain/job.h"
#include "server/domain/quota.h"
#include "server/store/sqlite.h"

namespace traind {

enum class Detail {
  kWhole,
  kListing,  // without decisions and attempts
};

// The beginning of every query for ReadSelectedJobs.
#define TRAIND_SELECT_JOBS                                                                         \
  "SELECT jobs.number, id, owner, request_id, jobs.name, spec_sha256, spec_text, "                 \
  "accepted_at_ms, metric, higher_is_better, folds, epochs, patience, slots, device, batch, "      \
  "precision, checkpoint_every_ms, has_test, train_bytes, test_bytes, budget_ms, "                 \
  "spec_deadline_ms, policy, share_plan, share_first_fold, share_reserve, share_stop, "            \
  "reserve_margin, reserve_least_ms, subsample, speed_key, cache_key, cache_read, jobs.from_job, " \
  "seeds, models_from, asked_sha256, after_any_end, state, "                                       \
  "end_reason, end_message, started_at_ms, deadline_ms, finished_at_ms, finish_requested, "        \
  "cancel_requested, floor_model, jobs.floor_score, priority, publish_s, quota_reached, pinned, "  \
  "waited_ms, spec_json, "                                                                         \
  "warnings_json, after_json, trials_json, search_json, constraints_json, "                        \
  "prediction_number, version, "                                                                   \
  "table_path, content_sha256, train_rows, test_rows, features, classes "                          \
  "FROM jobs LEFT JOIN datasets ON datasets.job = jobs.number "

// Runs `query` (TRAIND_SELECT_JOBS with a condition) and reads the other rows of each Job. numbers:
// if not null, receives jobs.number of each. REQUIRES: a transaction is open, so that all rows are
// consistent.
absl::StatusOr<std::vector<Job>> ReadSelectedJobs(sqlite::Connection& db, sqlite::Query query,
                                                  Detail detail,
                                                  std::vector<int64_t>* numbers = nullptr);

// Inserts the Job and stores its number in *number.
absl::Status InsertJob(sqlite::Connection& db, const Job& job, int64_t* number);
// Writes the differences between two versions of a Job. before: null if the Job was just inserted.
absl::Status UpdateJob(sqlite::Connection& db, int64_t number, const Job* before, const Job& after);
absl::Status WriteCheckpoint(sqlite::Connection& db, int64_t number, const Checkpoint& checkpoint);

absl::StatusOr<std::vector<Quota>> ReadQuotas(sqlite::Connection& db);
// Returns the usage of folds' Attempts that ended after `since`.
absl::StatusOr<std::vector<AttemptUsage>> ReadUsage(sqlite::Connection& db, absl::Time since);

}  // namespace traind
