// The spec's fields for people and for editors, out of the comments and rules of proto/job.proto.
// Threads: safe, pure.
#pragma once

#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>
#include <google/protobuf/descriptor.pb.h>

#include <string>
#include <vector>

namespace traind {

// In all of them `files` is what `protoc --include_source_info --include_imports` writes for
// proto/job.proto. Errors: InvalidArgument: traind.v1.JobSpec is not in it.

// Describes the field of that path ("train.epochs"), and what stands in it if it is a section;
// recursive: also in its sections. An empty path is the whole spec. NotFound names a field that may
// be meant.
absl::StatusOr<std::string> ExplainField(const google::protobuf::FileDescriptorSet& files,
                                         absl::string_view path, bool recursive);

// Returns the JSON Schema (2020-12) of a spec file.
absl::StatusOr<std::string> SpecSchema(const google::protobuf::FileDescriptorSet& files);

// Returns the paths of all fields that users may set, in the order of the sections.
absl::StatusOr<std::vector<std::string>> SpecPaths(
    const google::protobuf::FileDescriptorSet& files);

}  // namespace traind
