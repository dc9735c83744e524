// How much of a Job's time something was trained or made.
#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <utility>

#include "tests/simulation/checker.h"

namespace traind::simulation {

double ProductiveRatio(const std::vector<nlohmann::json>& history) {
  std::vector<std::pair<int64_t, int64_t>> spans;
  std::map<int64_t, int64_t> open;
  int64_t accepted = -1, end = -1;
  std::set<std::string> jobs;
  for (const nlohmann::json& r : history) {
    const std::string kind = r["kind"];
    const int64_t t = r["t"];
    if (kind == "seed" && (r["faults"] || r["jobs"] != 1)) return -1;
    if (kind == "truth" &&
        (r["window_s"] < 30 || !r["placeable"] || r["interrupted"] || r["bad_data"] || r["reuses"]))
      return -1;
    if (kind == "rank_start") open[r["attempt"]] = t;
    if (kind == "rank_end" && open.count(r["attempt"]) > 0) {
      spans.emplace_back(open[r["attempt"]], t);
    }
    if (kind == "publish_begin") spans.emplace_back(t, t + r["cost"].get<int64_t>());
    if (kind != "job") continue;
    if (accepted < 0) accepted = t;
    if (r["finished"] >= 0) end = t;
  }
  if (accepted < 0 || end <= accepted) return -1;
  std::sort(spans.begin(), spans.end());
  int64_t busy = 0, upto = accepted;
  for (auto [from, to] : spans) {
    from = std::max(from, upto);
    to = std::min(to, end);
    if (to > from) {
      busy += to - from;
      upto = to;
    }
  }
  return static_cast<double>(busy) / static_cast<double>(end - accepted);
}

}  // namespace traind::simulation
