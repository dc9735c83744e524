#include "server/http/error_json.h"

#include <absl/strings/str_cat.h>

#include "common/base/json_text.h"

namespace traind {
namespace {

std::string DetailJson(const ErrorDetail& detail) {
  std::string json =
      absl::StrCat("{\"@type\":\"", kErrorInfoType, "\",\"reason\":", JsonString(detail.reason),
                   ",\"domain\":\"", kErrorDomain, "\",\"metadata\":{");
  bool first = true;
  for (const auto& [key, value] : detail.metadata) {
    absl::StrAppend(&json, first ? "" : ",", JsonString(key), ":", JsonString(value));
    first = false;
  }
  return json + "}}";
}

}  // namespace

int HttpStatusOf(absl::StatusCode code) {
  switch (code) {
    case absl::StatusCode::kOk:
      return 200;
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kOutOfRange:
      return 400;
    case absl::StatusCode::kUnauthenticated:
      return 401;
    case absl::StatusCode::kPermissionDenied:
      return 403;
    case absl::StatusCode::kNotFound:
      return 404;
    case absl::StatusCode::kAborted:
    case absl::StatusCode::kAlreadyExists:
      return 409;
    case absl::StatusCode::kResourceExhausted:
      return 429;
    case absl::StatusCode::kCancelled:
      return 499;
    case absl::StatusCode::kUnimplemented:
      return 501;
    case absl::StatusCode::kUnavailable:
      return 503;
    case absl::StatusCode::kDeadlineExceeded:
      return 504;
    default:
      return 500;
  }
}

HttpResponse ErrorResponse(const absl::Status& status, const std::vector<ErrorDetail>& details,
                           int http_status) {
  HttpResponse response;
  response.status = http_status == 0 ? HttpStatusOf(status.code()) : http_status;
  response.content_type = "application/json";
  std::string json =
      absl::StrCat("{\"error\":{\"code\":", response.status,
                   ",\"status\":", JsonString(absl::StatusCodeToString(status.code())),
                   ",\"message\":", JsonString(status.message()), ",\"details\":[");
  for (const ErrorDetail& detail : details) {
    absl::StrAppend(&json, &detail == &details.front() ? "" : ",", DetailJson(detail));
  }
  response.body = std::make_shared<const std::string>(json + "]}}\n");
  return response;
}

}  // namespace traind
