// Measures the quality that faults cost a Job.
#include <absl/strings/str_cat.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>

#include "tests/simulation/checker.h"

namespace traind::simulation {
namespace {

using nlohmann::json;

constexpr int64_t kSecond = 1'000'000;
constexpr int kPlanned = 3;  // times that the undisturbed run would have to fit
// Under the fixed policy nothing trains after this share of the window (B5).
constexpr double kStopShare = 0.7;
// Quality as recorded: 0 without an answer, 1 FLOOR, 2 DEGRADED, 3 FULL.

// The last record of each Job, and what was asked for, by request.
struct Jobs {
  std::map<std::string, json> last, truth;
  std::map<std::string, int64_t> ended;  // by the core's clock, as deadlines are
};

Jobs ReadJobs(const std::vector<json>& history) {
  Jobs jobs;
  for (const json& r : history) {
    if (r["kind"] == "job") {
      jobs.last[r["request"]] = r;
      if (r["state"] == "SUCCEEDED") jobs.ended.emplace(r["request"], r["core"]);
    }
    if (r["kind"] == "truth") jobs.truth[r["request"]] = r;
  }
  return jobs;
}

// Until then a fold could train: by the core's clock; negative: without end.
int64_t TrainsUntil(const json& job, const json& truth) {
  const int64_t deadline = job["deadline"];
  if (deadline < 0 || !truth["fixed"]) return deadline;
  const int64_t began = job["accepted"].get<int64_t>() + job["waited"].get<int64_t>();
  return began + static_cast<int64_t>(kStopShare * static_cast<double>(deadline - began));
}

// The user or chance decides what such a Job ends with.
bool Comparable(const json& truth) {
  return truth["placeable"] && !truth["bad_data"] && !truth["interrupted"] && !truth["reuses"];
}

bool StatesItsLoss(const json& job) {
  static const std::set<std::string> rules = {"B2", "B3", "B4", "B5", "B8", "retry"};
  const json& decisions = job["decisions"];
  return std::any_of(decisions.begin(), decisions.end(),
                     [](const json& d) { return rules.count(d[0]) > 0; });
}

// Answers that an earlier Attempt left of such a fold may still count.
bool GaveUpAFold(const json& job) {
  const json& decisions = job["decisions"];
  return std::any_of(decisions.begin(), decisions.end(),
                     [](const json& d) { return d[0] == "retry" && d[3] == "given up"; });
}

}  // namespace

std::vector<std::string> CheckQuality(const std::vector<json>& history,
                                      const std::vector<json>& without_faults) {
  std::vector<std::string> violations;
  const Jobs jobs = ReadJobs(history), calm = ReadJobs(without_faults);
  for (const auto& [request, job] : jobs.last) {
    const auto undisturbed = calm.last.find(request);
    if (undisturbed == calm.last.end() || jobs.truth.count(request) == 0) continue;
    if (!Comparable(jobs.truth.at(request))) continue;
    const json& other = undisturbed->second;
    if (job["state"] != "SUCCEEDED" || other["state"] != "SUCCEEDED") continue;
    if (!job["has_test"] || job["quality"] >= other["quality"]) continue;
    const std::string what = absl::StrCat(
        "job ", job["job"].get<std::string>(), " ended with quality ", job["quality"].dump(),
        " and not with ", other["quality"].dump(), " as without faults");
    if (!StatesItsLoss(job)) violations.push_back(what + ", and no decision says why");
    const int64_t took = other["finished"].get<int64_t>() - other["accepted"].get<int64_t>();
    // `finished` is the time of its answer, also where it tried for a better one after that.
    const int64_t until = TrainsUntil(job, jobs.truth.at(request));
    const int64_t left = until - jobs.ended.at(request);
    const bool time_enough = until < 0 || left > kPlanned * took + 10 * kSecond;
    if (time_enough && !GaveUpAFold(job)) {
      violations.push_back(absl::StrCat(what, ", though it had ", left / kSecond, " s left"));
    }
  }
  return violations;
}

}  // namespace traind::simulation
