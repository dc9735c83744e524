#include "common/plain/message_info.h"

namespace traind::plain {
namespace {

bool IsMember(const FieldInfo& field, absl::string_view oneof) {
  return field.oneof != nullptr && field.oneof == oneof;
}

}  // namespace

const FieldInfo* MessageInfo::Find(absl::string_view field) const {
  for (const FieldInfo& known : *this) {
    if (known.name == field) return &known;
  }
  return nullptr;
}

const FieldInfo* ChosenField(const MessageInfo& info, const void* message,
                             absl::string_view oneof) {
  for (const FieldInfo& field : info) {
    if (IsMember(field, oneof) && ItemOf(field, message) != nullptr) return &field;
  }
  return nullptr;
}

bool ChooseField(const MessageInfo& info, void* message, absl::string_view oneof,
                 absl::string_view member) {
  const FieldInfo* const chosen = info.Find(member);
  if (chosen == nullptr || !IsMember(*chosen, oneof)) return false;
  for (const FieldInfo& field : info) {
    if (IsMember(field, oneof)) field.reach(message, Reach::kClear, 0);
  }
  chosen->reach(message, Reach::kAdd, 0);
  return true;
}

}  // namespace traind::plain
