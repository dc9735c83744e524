#include "server/http/routes.h"

#include <absl/strings/str_cat.h>

#include <utility>

namespace traind {

const std::vector<Route>& Routes() {
  static const auto* const routes = new std::vector<Route>{
      {"GET", "/v1/jobs", "ListJobs"},
      {"POST", "/v1/jobs", "Submit", RouteKind::kSpec, true},
      {"POST", "/v1/jobs:batch", "SubmitBatch", RouteKind::kBody, true},
      {"POST", "/v1/plan", "Plan", RouteKind::kSpec, true},
      {"PUT", "/v1/uploads/{sha256}/{name}", "Upload", RouteKind::kPart, true},
      {"GET", "/v1/jobs/{id}", "GetJob"},
      {"PATCH", "/v1/jobs/{id}", "UpdateJob", RouteKind::kBody},
      {"DELETE", "/v1/jobs/{id}", "DeleteJob", RouteKind::kPlain, true},
      {"GET", "/v1/jobs/{id}/events", "WatchJob", RouteKind::kEvents},
      {"GET", "/v1/jobs/{id}/history", "GetEvents", RouteKind::kPlain, true, "follow=false"},
      {"GET", "/v1/jobs/{id}/metrics", "GetMetrics", RouteKind::kSeries, true},
      {"GET", "/v1/jobs/{id}/artifacts/{name}", "FetchArtifact", RouteKind::kFile, true},
      {"GET", "/v1/jobs/{id}/logs", "GetLogs", RouteKind::kPlain, true, "follow=false"},
      {"GET", "/v1/jobs/{id}/spec", "GetSpec"},
      {"GET", "/v1/jobs/{id}/trials", "ListTrials"},
      {"POST", "/v1/jobs/{id}/trials", "ProposeTrial", RouteKind::kBody},
      {"POST", "/v1/jobs/{id}:finish", "FinishJob", RouteKind::kBody},
      {"POST", "/v1/jobs/{id}:cancel", "CancelJob", RouteKind::kBody},
      {"POST", "/v1/jobs/{id}:pause", "PauseJob", RouteKind::kBody},
      {"POST", "/v1/jobs/{id}:resume", "ResumeJob", RouteKind::kBody},
      {"POST", "/v1/jobs/{id}:pin", "PinJob", RouteKind::kBody, false, "pinned=true"},
      {"POST", "/v1/jobs/{id}:unpin", "PinJob", RouteKind::kBody, false, "pinned=false"},
      {"POST", "/v1/jobs/{id}:predict", "Predict", RouteKind::kBody, true},
      {"POST", "/v1/jobs/{id}:predictRows", "PredictRows", RouteKind::kBody, true},
      {"GET", "/v1/workers", "ListWorkers"},
      {"PATCH", "/v1/workers/{id}", "UpdateWorker", RouteKind::kBody},
      {"GET", "/v1/quotas", "ListQuotas"},
      {"PUT", "/v1/quotas", "SetQuota", RouteKind::kBody},
      {"DELETE", "/v1/quotas", "RemoveQuota"},
      {"GET", "/v1/gc", "CollectGarbage", RouteKind::kPlain, true, "dry_run=true"},
      {"POST", "/v1/gc", "CollectGarbage", RouteKind::kBody, true},
  };
  return *routes;
}

bool MatchesPattern(absl::string_view pattern, absl::string_view path,
                    std::vector<std::pair<std::string, std::string>>* fields) {
  fields->clear();
  while (!pattern.empty()) {
    if (pattern[0] != '{') {
      if (path.empty() || path[0] != pattern[0]) return false;
      pattern.remove_prefix(1);
      path.remove_prefix(1);
      continue;
    }
    const size_t close = pattern.find('}');
    const size_t end = path.find_first_of("/:");
    const absl::string_view value = path.substr(0, end);
    if (value.empty()) return false;
    fields->emplace_back(std::string(pattern.substr(1, close - 1)), std::string(value));
    pattern.remove_prefix(close + 1);
    path.remove_prefix(value.size());
  }
  return path.empty();
}

RouteMatch FindRoute(absl::string_view method, absl::string_view path) {
  RouteMatch match;
  for (const Route& route : Routes()) {
    std::vector<std::pair<std::string, std::string>> fields;
    if (!MatchesPattern(route.pattern, path, &fields)) continue;
    if (method == route.method || (method == "HEAD" && route.method == absl::string_view("GET"))) {
      return {&route, std::move(fields), ""};
    }
    absl::StrAppend(&match.allow, match.allow.empty() ? "" : ", ", route.method);
  }
  return match;
}

}  // namespace traind
