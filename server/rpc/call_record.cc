#include "server/rpc/call_record.h"

#include <absl/strings/str_join.h>
#include <google/protobuf/descriptor.h>

#include <utility>
#include <vector>

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

// The Jobs that a batch has made or found.
std::string JobsOf(const Message& reply) {
  const FieldDescriptor* const outcomes = reply.GetDescriptor()->FindFieldByName("outcomes");
  if (outcomes == nullptr || !outcomes->is_repeated()) return "";
  const auto* const reflection = reply.GetReflection();
  std::vector<std::string> ids;
  for (int i = 0; i < reflection->FieldSize(reply, outcomes); ++i) {
    std::string id = TextOf(reflection->GetRepeatedMessage(reply, outcomes, i), "id");
    if (!id.empty()) ids.push_back(std::move(id));
  }
  return absl::StrJoin(ids, " ");
}

}  // namespace

std::string SubjectOf(const Message& request, const Message& reply) {
  if (const Message* const job = PartOf(reply, "job"); job != nullptr) {
    if (std::string id = TextOf(*job, "id"); !id.empty()) return id;
  }
  if (std::string ids = JobsOf(reply); !ids.empty()) return ids;
  if (std::string id = TextOf(request, "id"); !id.empty()) return id;
  const Message* const quota = PartOf(request, "quota");
  const Message* const subject = PartOf(quota == nullptr ? request : *quota, "subject");
  if (subject == nullptr) return "";
  const std::string owner = TextOf(*subject, "owner");
  return owner.empty() ? TextOf(*subject, "label") : owner;
}

}  // namespace traind
