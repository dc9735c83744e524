// Copies between a plain struct that lists its fields (common/facts/field.h) and a Protobuf
// message with fields of the same names and types. An enum becomes a Protobuf enum by its
// number, or a string by its name.
// Threads: safe. Errors: a field that the message lacks, or has with another type, ends the
// process: the two definitions have to be mended.
#pragma once

#include <google/protobuf/message.h>

#include <vector>

#include "common/facts/field.h"

namespace traind {

void CopyToProto(const std::vector<Field>& fields, google::protobuf::Message& message);
// A number that an enum does not have becomes its EnumNames::unknown.
void CopyFromProto(const google::protobuf::Message& message, const std::vector<Field>& fields);

}  // namespace traind
