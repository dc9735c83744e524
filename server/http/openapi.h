// The description of the HTTP interface, out of the table of routes and
// proto/training_service.proto.
#pragma once

#include <absl/status/statusor.h>
#include <google/protobuf/descriptor.pb.h>

#include <string>

namespace traind {

// OpenAPI 3.0 in JSON. files: what `protoc --include_source_info --include_imports` writes for
// proto/training_service.proto. Errors: InvalidArgument where a route names a call that is not
// there.
absl::StatusOr<std::string> OpenApiJson(const google::protobuf::FileDescriptorSet& files);

}  // namespace traind
