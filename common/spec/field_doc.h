// The description of a spec's field, out of its comment and its rules in proto/job.proto.
// Threads: safe, pure.
#pragma once

#include <absl/status/statusor.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor.pb.h>

#include <string>

namespace traind {

struct FieldDoc {
  std::string type;           // "duration", "list of paths"
  std::string default_value;  // as YAML writes it; empty: none
  std::string allowed;        // "1 to 100", "`a`, `b`"; empty: anything
  std::string meaning;        // empty: the field has no comment
};

// Whether a field's default is a value, as YAML writes it: some have words that tell cases apart.
bool DefaultIsValue(const google::protobuf::FieldDescriptor& field);

FieldDoc DocOf(const google::protobuf::FieldDescriptor& field);

// Each returns the comment as one paragraph; "" if there is none.
std::string CommentOf(const google::protobuf::Descriptor& type);
std::string CommentOf(const google::protobuf::FieldDescriptor& field);
std::string CommentOf(const google::protobuf::MethodDescriptor& method);

// Builds the files, which have comments, and returns traind.v1.JobSpec. InvalidArgument: it is not
// in them.
absl::StatusOr<const google::protobuf::Descriptor*> BuildSpec(
    const google::protobuf::FileDescriptorSet& files, google::protobuf::DescriptorPool& pool);

}  // namespace traind
