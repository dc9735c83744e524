// The names by which a call is recorded, whether it came by gRPC or HTTP.
#pragma once

#include <google/protobuf/message.h>

#include <string>

namespace traind {

// The Job that the call is about, or the Jobs that it made, or the owner or label of a quota.
// Empty: none.
std::string SubjectOf(const google::protobuf::Message& request,
                      const google::protobuf::Message& reply);

}  // namespace traind
