#include "worker/train/failure.h"

#include <absl/strings/cord.h>

#include "worker/device/guard.h"

namespace traind {
namespace {

constexpr char kReasonKey[] = "traind/reason";

absl::Status WithReason(absl::Status status, AttemptEndReason reason) {
  status.SetPayload(kReasonKey, absl::Cord(Name(reason)));
  return status;
}

}  // namespace

absl::Status DivergedError(absl::string_view message) {
  return WithReason(absl::FailedPreconditionError(message), AttemptEndReason::kDiverged);
}

absl::Status DataError(const absl::Status& status) {
  return status.ok() ? status : WithReason(status, AttemptEndReason::kDataError);
}

absl::Status OutOfTimeError(absl::string_view message) {
  return WithReason(absl::DeadlineExceededError(message), AttemptEndReason::kStoppedInTime);
}

absl::Status StorageError(const absl::Status& status) {
  if (!absl::IsResourceExhausted(status)) return status;
  return WithReason(status, AttemptEndReason::kStorageFull);
}

AttemptEndReason FailureReason(const absl::Status& status) {
  const auto reason = status.GetPayload(kReasonKey);
  if (reason.has_value()) return AttemptEndReasonByName(std::string(*reason));
  switch (FaultOf(status)) {
    case Fault::kOutOfMemory:
      return AttemptEndReason::kOutOfMemory;
    case Fault::kCollective:
      return AttemptEndReason::kCollectiveTimeout;
    case Fault::kNone:
    case Fault::kOther:
      break;
  }
  if (absl::IsInvalidArgument(status)) return AttemptEndReason::kUserError;
  return AttemptEndReason::kInternal;
}

}  // namespace traind
