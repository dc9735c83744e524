// Reads quotas and their usage from the database.
#include <nlohmann/json.hpp>

#include "common/base/status_macros.h"
#include "server/store/job_rows.h"

namespace traind {

using sqlite::Connection;
using sqlite::Query;

absl::StatusOr<std::vector<Quota>> ReadQuotas(Connection& db) {
  std::vector<Quota> quotas;
  Query q = db.Select(
      "SELECT owner, label, allowance_ms, period_ms, rolling, since_ms FROM quotas "
      "ORDER BY owner, label");
  while (q.Next()) {
    Quota& quota = quotas.emplace_back();
    q.Read(quota.subject.owner, quota.subject.label, quota.allowance, quota.period, quota.rolling,
           quota.since);
  }
  RETURN_IF_ERROR(q.status());
  return quotas;
}

absl::StatusOr<std::vector<AttemptUsage>> ReadUsage(Connection& db, absl::Time since) {
  std::vector<AttemptUsage> usage;
  std::vector<int64_t> jobs;
  Query q = db.Select(
      "SELECT a.job, owner, a.started_at_ms, ended_at_ms, slots_json FROM attempts a "
      "JOIN jobs ON jobs.number = a.job WHERE kind = 2 AND ended_at_ms > ? AND slots_json != '[]' "
      "ORDER BY ended_at_ms",
      since);
  while (q.Next()) {
    AttemptUsage& used = usage.emplace_back();
    int64_t job = 0;
    std::string slots;
    q.Read(job, used.owner, used.start, used.end, slots);
    const auto list = nlohmann::json::parse(slots, nullptr, /*allow_exceptions=*/false);
    if (!list.is_array()) return absl::DataLossError("database: attempts.slots_json is not a list");
    used.slots = static_cast<int>(list.size());
    jobs.push_back(job);
  }
  RETURN_IF_ERROR(q.status());
  for (size_t i = 0; i < usage.size(); ++i) {
    Query labels = db.Select("SELECT key, value FROM job_labels WHERE job = ?", jobs[i]);
    while (labels.Next()) {
      std::string key, value;
      labels.Read(key, value);
      usage[i].labels.emplace(std::move(key), std::move(value));
    }
    RETURN_IF_ERROR(labels.status());
  }
  return usage;
}

}  // namespace traind
