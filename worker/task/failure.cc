#include "worker/task/failure.h"

#include <absl/strings/cord.h>

#include <optional>
#include <utility>

namespace traind {
namespace {

constexpr char kReasonKey[] = "traind/reason";

absl::Status WithReason(absl::Status status, absl::string_view reason) {
  status.SetPayload(kReasonKey, absl::Cord(reason));
  return status;
}

std::optional<std::string> MarkOf(const absl::Status& status) {
  const auto reason = status.GetPayload(kReasonKey);
  if (!reason.has_value()) return std::nullopt;
  return std::string(*reason);
}

}  // namespace

absl::Status OutOfMemory(absl::Status status) {
  return status.ok() ? status : WithReason(std::move(status), "OUT_OF_MEMORY");
}

absl::Status CollectiveTimeout(absl::Status status) {
  return status.ok() ? status : WithReason(std::move(status), "COLLECTIVE_TIMEOUT");
}

absl::Status DivergedError(absl::string_view message) {
  return WithReason(absl::FailedPreconditionError(message), "DIVERGED");
}

absl::Status OutOfTimeError(absl::string_view message) {
  return WithReason(absl::DeadlineExceededError(message), "STOPPED_IN_TIME");
}

absl::Status UserError(absl::string_view message) {
  return WithReason(absl::InvalidArgumentError(message), "USER_ERROR");
}

absl::Status DataError(const absl::Status& status) {
  return status.ok() ? status : WithReason(status, "DATA_ERROR");
}

absl::Status StorageError(const absl::Status& status) {
  if (!absl::IsResourceExhausted(status) || MarkOf(status).has_value()) return status;
  return WithReason(status, "STORAGE_FULL");
}

absl::Status OfUserFiles(const absl::Status& status) {
  if (status.ok() || MarkOf(status).has_value()) return status;
  switch (status.code()) {
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kPermissionDenied:
      return DataError(status);
    default:
      return StorageError(status);
  }
}

std::string FailureReason(const absl::Status& status) {
  if (const auto mark = MarkOf(status)) return *mark;
  return absl::IsInvalidArgument(status) ? "USER_ERROR" : "INTERNAL";
}

}  // namespace traind
