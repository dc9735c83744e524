#include "server/rpc/call_record.h"

#include <google/protobuf/descriptor.h>

namespace traind {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

std::string TextOf(const Message& message, const char* name) {
  const FieldDescriptor* const field = message.GetDescriptor()->FindFieldByName(name);
  if (field == nullptr || field->is_repeated() ||
      field->cpp_type() != FieldDescriptor::CPPTYPE_STRING) {
    return "";
  }
  return message.GetReflection()->GetString(message, field);
}

const Message* PartOf(const Message& message, const char* name) {
  const FieldDescriptor* const field = message.GetDescriptor()->FindFieldByName(name);
  if (field == nullptr || field->is_repeated() ||
      field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) {
    return nullptr;
  }
  return &message.GetReflection()->GetMessage(message, field);
}

}  // namespace

std::string SubjectOf(const Message& request, const Message& reply) {
  if (const Message* const job = PartOf(reply, "job"); job != nullptr) {
    if (std::string id = TextOf(*job, "id"); !id.empty()) return id;
  }
  if (std::string id = TextOf(request, "id"); !id.empty()) return id;
  const Message* const quota = PartOf(request, "quota");
  const Message* const subject = PartOf(quota == nullptr ? request : *quota, "subject");
  if (subject == nullptr) return "";
  const std::string owner = TextOf(*subject, "owner");
  return owner.empty() ? TextOf(*subject, "label") : owner;
}

}  // namespace traind
