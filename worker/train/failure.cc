#include "worker/train/failure.h"

#include <absl/strings/cord.h>

#include "worker/device/guard.h"

namespace traind {
namespace {

constexpr char kReasonKey[] = "traind/reason";

absl::Status WithReason(absl::Status status, absl::string_view reason) {
  status.SetPayload(kReasonKey, absl::Cord(reason));
  return status;
}

}  // namespace

absl::Status DivergedError(absl::string_view message) {
  return WithReason(absl::FailedPreconditionError(message), "DIVERGED");
}

absl::Status DataError(const absl::Status& status) {
  return status.ok() ? status : WithReason(status, "DATA_ERROR");
}

absl::Status OutOfTimeError(absl::string_view message) {
  return WithReason(absl::DeadlineExceededError(message), "STOPPED_IN_TIME");
}

absl::Status StorageError(const absl::Status& status) {
  if (!absl::IsResourceExhausted(status)) return status;
  return WithReason(status, "STORAGE_FULL");
}

std::string FailureReason(const absl::Status& status) {
  const auto reason = status.GetPayload(kReasonKey);
  if (reason.has_value()) return std::string(*reason);
  switch (FaultOf(status)) {
    case Fault::kOutOfMemory:
      return "OUT_OF_MEMORY";
    case Fault::kCollective:
      return "COLLECTIVE_TIMEOUT";
    case Fault::kNone:
    case Fault::kOther:
      break;
  }
  if (absl::IsInvalidArgument(status)) return "USER_ERROR";
  return "INTERNAL";
}

}  // namespace traind
