#include "worker/device/guard.h"

#include <absl/strings/cord.h>
#include <absl/strings/match.h>
#include <absl/strings/str_split.h>
#include <absl/strings/string_view.h>
#include <c10/util/Exception.h>

#include <exception>
#include <new>
#include <string>

namespace traind {
namespace {

constexpr char kFaultKey[] = "traind/fault";
constexpr char kOutOfMemory[] = "out_of_memory";
constexpr char kCollective[] = "collective";

absl::Status Tagged(absl::StatusCode code, absl::string_view message, absl::string_view fault) {
  absl::Status status(code, message);
  status.SetPayload(kFaultKey, absl::Cord(fault));
  return status;
}

// Torch's messages end in a backtrace; the first lines say what happened.
absl::string_view FirstLines(absl::string_view text) {
  const size_t trace = text.find("\nException raised from");
  return text.substr(0, trace);
}

// torch's CPU allocator throws a plain Error. So do cuBLAS and cuDNN, which allocate device memory
// outside torch's allocator; a convolution for whose workspaces there is no room finds no engine.
bool IsOutOfMemory(absl::string_view text) {
  for (const absl::string_view sign :
       {"can't allocate memory", "out of memory", "CUBLAS_STATUS_ALLOC_FAILED",
        "CUBLAS_STATUS_NOT_INITIALIZED", "CUDNN_STATUS_ALLOC_FAILED",
        "CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED",
        "CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED", "CUSOLVER_STATUS_ALLOC_FAILED",
        "Unable to find a valid cuDNN algorithm", "GET was unable to find an engine"}) {
    if (absl::StrContains(text, sign)) return true;
  }
  return false;
}

// Gloo throws a std::runtime_error of its own.
absl::Status FromText(absl::string_view text) {
  text = FirstLines(text);
  if (IsOutOfMemory(text)) {
    return Tagged(absl::StatusCode::kResourceExhausted, text, kOutOfMemory);
  }
  if (absl::StrContains(text, "gloo") || absl::StrContains(text, "NCCL")) {
    return Tagged(absl::StatusCode::kUnavailable, text, kCollective);
  }
  return absl::InternalError(text);
}

}  // namespace

Fault FaultOf(const absl::Status& status) {
  if (status.ok()) return Fault::kNone;
  const auto tag = status.GetPayload(kFaultKey);
  if (tag.has_value() && *tag == kOutOfMemory) return Fault::kOutOfMemory;
  if (tag.has_value() && *tag == kCollective) return Fault::kCollective;
  return Fault::kOther;
}

absl::Status OutOfMemoryError(absl::string_view message) {
  return Tagged(absl::StatusCode::kResourceExhausted, message, kOutOfMemory);
}

absl::Status CollectiveError(absl::string_view message) {
  return Tagged(absl::StatusCode::kUnavailable, message, kCollective);
}

absl::Status Guarded(const std::function<absl::Status()>& body) {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return Tagged(absl::StatusCode::kResourceExhausted, "out of memory", kOutOfMemory);
  } catch (const c10::OutOfMemoryError& error) {
    return Tagged(absl::StatusCode::kResourceExhausted, error.what_without_backtrace(),
                  kOutOfMemory);
  } catch (const c10::DistError& error) {
    return Tagged(absl::StatusCode::kUnavailable, error.what_without_backtrace(), kCollective);
  } catch (const c10::Error& error) {
    return FromText(error.what_without_backtrace());
  } catch (const std::exception& error) {
    return FromText(error.what());
  }
}

}  // namespace traind
