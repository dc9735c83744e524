// The tables that describe plain structs: structs that build_defs/plain_structs.cc makes from the
// messages of a .proto file, with the fields' names, defaults and rules, but without Protobuf.
// One interpreter reads and writes all of them by these tables (plain_json.h).
//
// Threads: tables are constant.
#pragma once

#include <absl/strings/string_view.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace traind::plain {

enum class Kind : uint8_t {
  kBool,       // bool
  kInteger,    // int64_t, for int32, too
  kUnsigned,   // uint64_t, for uint32, too
  kReal,       // double, for float, too
  kText,       // std::string
  kDuration,   // absl::Duration
  kTime,       // absl::Time
  kEnum,       // an enum class over int
  kMessage,    // another plain struct
  kTextMap,    // std::map<std::string, std::string>
  kNumberMap,  // std::map<std::string, double>
};

enum class Reach : uint8_t {
  kAdd,    // the value to be written: made in an optional, appended to a list
  kItem,   // the index-th value; null where there is none
  kClear,  // makes an optional or a list empty
};

template <class T>
void* ReachField(T& field, Reach how, size_t index) {
  return how == Reach::kItem && index > 0 ? nullptr : &field;
}
template <class T>
void* ReachField(std::optional<T>& field, Reach how, size_t index) {
  if (how == Reach::kAdd) return &field.emplace();
  if (how == Reach::kClear) field.reset();
  return field.has_value() && index == 0 ? &*field : nullptr;
}
template <class T>
void* ReachField(std::vector<T>& field, Reach how, size_t index) {
  if (how == Reach::kAdd) return &field.emplace_back();
  if (how == Reach::kClear) field.clear();
  return index < field.size() ? &field[index] : nullptr;
}

struct MessageInfo;

struct EnumValue {
  const char* name;  // as the .proto file has it
  int number;
};

// A field and its rules (proto/field_rules.proto).
struct FieldInfo {
  const char* name;
  Kind kind;
  bool list;         // a std::vector
  bool optional;     // a std::optional, or a field with a presence of its own and a default
  bool has_default;  // other than zero, empty and `auto`
  bool required;
  bool automatic;            // the word `auto` stands for zero, or the empty text
  double min, max;           // inclusive; of a Duration in seconds
  const char* const* words;  // that may stand in a text, ended by null; null: any text
  const EnumValue* values;   // of an enum, ended by a null name
  const MessageInfo* message;
  const char* oneof;          // the oneof that it is a member of, or null
  const char* const* unless;  // fields beside it that make it not required, ended by null; or null
  const char* multiple_of;    // the field beside it that must divide it, or null
  const char* needs;          // the field of the spec that must be set where this one is, or null
  bool sequence;              // a network that takes its input step by step
  bool trees;                 // a model that is boosted trees
  void* (*reach)(void* message, Reach how, size_t index);
};

struct MessageInfo {
  const char* name;
  const FieldInfo* fields;
  size_t count;

  const FieldInfo* begin() const { return fields; }
  const FieldInfo* end() const { return fields + count; }
  // Null where there is none of that name.
  const FieldInfo* Find(absl::string_view field) const;
};

// The index-th value of a field; null where there is none.
inline const void* ItemOf(const FieldInfo& field, const void* message, size_t index = 0) {
  return field.reach(const_cast<void*>(message), Reach::kItem, index);
}

// The member of a oneof that is set; null where none is.
const FieldInfo* ChosenField(const MessageInfo& info, const void* message, absl::string_view oneof);

// Sets a member of a oneof, with its defaults, and unsets the others. False where the oneof has no
// such member.
bool ChooseField(const MessageInfo& info, void* message, absl::string_view oneof,
                 absl::string_view member);

}  // namespace traind::plain
