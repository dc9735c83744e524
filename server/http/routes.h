// The paths of the HTTP interface: one table, from which requests are dispatched and the OpenAPI
// file is made.
#pragma once

#include <absl/strings/string_view.h>

#include <string>
#include <vector>

namespace traind {

// How a route's request is filled besides path and query, and its reply written.
enum class RouteKind {
  kPlain,   // no body
  kBody,    // the body is the request, less what the path names
  kSpec,    // the body is a spec, or a request with one under `spec`
  kEvents,  // the replies are sent as server-sent events
  kSeries,  // metrics as columns
  kFile,    // the bytes of a file
  kPart,    // the body is the field `content` as it is
};

struct Route {
  const char* method;
  // "/v1/jobs/{id}:finish": a name in braces is a field of the request, and matches up to the next
  // '/' or ':'.
  const char* pattern;
  const char* rpc;  // of TrainingService
  RouteKind kind = RouteKind::kPlain;
  bool slow = false;       // may take seconds: it reads files, or waits for Ranks
  const char* fixed = "";  // a field that the route sets: "dry_run=true"
};

// All routes of calls.
const std::vector<Route>& Routes();

struct RouteMatch {
  const Route* route = nullptr;                             // null: there is none
  std::vector<std::pair<std::string, std::string>> fields;  // values of the names in braces
  std::string allow;  // of a known path under another method: the methods that it has
};

RouteMatch FindRoute(absl::string_view method, absl::string_view path);

// Whether `path` is as `pattern` says; the values of the names go to `fields`.
bool MatchesPattern(absl::string_view pattern, absl::string_view path,
                    std::vector<std::pair<std::string, std::string>>* fields);

}  // namespace traind
