// Errors as HTTP answers: google.rpc.Status in JSON.
#pragma once

#include <absl/status/status.h>

#include <vector>

#include "common/wire/error_details.h"
#include "server/http/message.h"

namespace traind {

// {"error":{"code":404,"status":"NOT_FOUND","message":"...","details":[{"@type":...}]}} with the
// HTTP status that fits the code, unless http_status names another.
HttpResponse ErrorResponse(const absl::Status& status, const std::vector<ErrorDetail>& details,
                           int http_status = 0);

// The HTTP status of a code.
int HttpStatusOf(absl::StatusCode code);

}  // namespace traind
