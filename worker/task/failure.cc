#include "worker/task/failure.h"

#include <absl/strings/cord.h>

#include <optional>
#include <string>
#include <utility>

namespace traind {
namespace {

constexpr char kReasonKey[] = "traind/reason";

absl::Status WithReason(absl::Status status, AttemptEndReason reason) {
  status.SetPayload(kReasonKey, absl::Cord(Name(reason)));
  return status;
}

std::optional<AttemptEndReason> MarkOf(const absl::Status& status) {
  const auto reason = status.GetPayload(kReasonKey);
  if (!reason.has_value()) return std::nullopt;
  return AttemptEndReasonByName(std::string(*reason));
}

}  // namespace

absl::Status OutOfMemory(absl::Status status) {
  return status.ok() ? status : WithReason(std::move(status), AttemptEndReason::kOutOfMemory);
}

absl::Status CollectiveTimeout(absl::Status status) {
  return status.ok() ? status : WithReason(std::move(status), AttemptEndReason::kCollectiveTimeout);
}

absl::Status DivergedError(absl::string_view message) {
  return WithReason(absl::FailedPreconditionError(message), AttemptEndReason::kDiverged);
}

absl::Status OutOfTimeError(absl::string_view message) {
  return WithReason(absl::DeadlineExceededError(message), AttemptEndReason::kStoppedInTime);
}

absl::Status UserError(absl::string_view message) {
  return WithReason(absl::InvalidArgumentError(message), AttemptEndReason::kUserError);
}

absl::Status DataError(const absl::Status& status) {
  return status.ok() ? status : WithReason(status, AttemptEndReason::kDataError);
}

absl::Status StorageError(const absl::Status& status) {
  if (!absl::IsResourceExhausted(status) || MarkOf(status).has_value()) return status;
  return WithReason(status, AttemptEndReason::kStorageFull);
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

AttemptEndReason FailureReason(const absl::Status& status) {
  if (const auto mark = MarkOf(status)) return *mark;
  return absl::IsInvalidArgument(status) ? AttemptEndReason::kUserError
                                         : AttemptEndReason::kInternal;
}

}  // namespace traind
