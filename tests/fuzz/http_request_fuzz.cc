// Reads any bytes as an HTTP request, "METHOD PATH\nHost\nOrigin\nBODY": who may call, which route
// it has, and the body as a spec.
#include <absl/strings/ascii.h>
#include <absl/strings/str_split.h>

#include <nlohmann/json.hpp>

#include "common/spec/yaml_spec.h"
#include "server/http/error_json.h"
#include "server/http/guard.h"
#include "server/http/json_as_yaml.h"
#include "server/http/routes.h"
#include "tests/fuzz/check.h"

namespace {

using namespace traind;

void CheckRouting(absl::string_view line) {
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(line, absl::MaxSplits(' ', 1));
  const RouteMatch match = FindRoute(parts.first, parts.second);
  for (const auto& [name, value] : match.fields) {
    Check(!name.empty() && !value.empty(), "a field of a path has a value");
    Check(value.find('/') == value.npos, "a field of a path is one part of it");
  }
}

void CheckGuard(absl::string_view host, absl::string_view origin) {
  static const auto& guard = *new Guard("127.0.0.1", {"lab"});
  HttpRequest request;
  request.headers = {{"host", std::string(host)}, {"origin", std::string(origin)}};
  if (guard.AllowsHost(host) && Guard::AllowsOrigin(request)) {
    Check(absl::EndsWith(absl::AsciiStrToLower(origin), absl::AsciiStrToLower(host)),
          "another site's page may not call");
  }
}

// The words of a request may come back in the answer.
void CheckError(absl::string_view text) {
  const HttpResponse response = ErrorResponse(absl::InvalidArgumentError(text),
                                              {{"INVALID_FIELD", {{"field", std::string(text)}}}});
  Check(response.body != nullptr && nlohmann::json::accept(*response.body), "an error is JSON");
}

void CheckBody(absl::string_view body) {
  const std::string yaml = JsonAsYaml(body);
  SpecReadOptions options;
  options.base_dir = "/data";
  const SpecReadResult read = ReadSpec(yaml, options);
  for (const SpecProblem& problem : read.problems) CheckError(problem.message);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::vector<absl::string_view> parts =
      absl::StrSplit(Bytes(data, size), absl::MaxSplits('\n', 3));
  parts.resize(4);
  CheckRouting(parts[0]);
  CheckGuard(parts[1], parts[2]);
  CheckError(parts[0]);
  CheckBody(parts[3]);
  return 0;
}
