// The spec reference, docs/SPEC.md, out of the comments and rules of
// proto/job.proto.
#pragma once

#include <absl/status/statusor.h>
#include <google/protobuf/descriptor.pb.h>

#include <string>

namespace traind {

// Markdown. files: what `protoc --include_source_info --include_imports` writes
// for proto/job.proto. Errors: InvalidArgument where traind.v1.JobSpec is not in
// them, or a field has no comment that could be its description.
absl::StatusOr<std::string> SpecReference(const google::protobuf::FileDescriptorSet& files);

}  // namespace traind
