#include "common/wire/status_details.h"

#include <string>

#include "common/base/refused_files.h"
#include "common/wire/error_details.h"
#include "common/wire/grpc_status.h"
#include "proto/rpc_status.pb.h"

namespace traind {
namespace {

// Clients of gRPC refuse more than 8 KiB of metadata.
constexpr size_t kMostErrorBytes = 6 << 10;

}  // namespace

grpc::Status ToGrpcWithDetails(const absl::Status& status) {
  const grpc::Status plain = ToGrpc(status);
  if (status.ok()) return plain;
  google::rpc::Status message;
  message.set_code(plain.error_code());
  // Where there are details, clients in Go take the text from them, too.
  message.set_message(plain.error_message());
  for (const ErrorDetail& detail : DetailsOf(status)) {
    google::rpc::ErrorInfo info;
    info.set_reason(detail.reason);
    info.set_domain(kErrorDomain);
    info.mutable_metadata()->insert(detail.metadata.begin(), detail.metadata.end());
    message.add_details()->PackFrom(info);
    // It travels in base64, beside the text.
    const size_t bytes = status.message().size() + message.ByteSizeLong() * 4 / 3;
    if (bytes > kMostErrorBytes) {
      message.mutable_details()->RemoveLast();
      break;
    }
  }
  if (message.details().empty()) return plain;
  return {plain.error_code(), plain.error_message(), message.SerializeAsString()};
}

absl::Status FromGrpcWithDetails(const grpc::Status& status) {
  const absl::Status plain = FromGrpc(status);
  google::rpc::Status message;
  if (plain.ok() || !message.ParseFromString(status.error_details())) return plain;
  RefusedFiles files;
  for (const auto& detail : message.details()) {
    google::rpc::ErrorInfo info;
    if (!detail.UnpackTo(&info)) continue;
    const auto field = info.metadata().find("field");
    const auto file = info.metadata().find(kFileKey);
    if (field == info.metadata().end() || file == info.metadata().end()) continue;
    files[field->second] = FileProblemByName(file->second);
  }
  return WithRefusedFiles(plain, files);
}

}  // namespace traind
