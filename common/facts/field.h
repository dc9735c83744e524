// Plain structs that can list their fields: by that list one function writes every struct as
// JSON, and another one copies it to and from its Protobuf message. A struct M declares
//
//   struct Probe {
//     static constexpr char kType[] = "probe";   // its name on the wire
//     double step_s = 0;
//     std::vector<Field> Fields();
//   };
//
// and its .cc file defines Fields() with ListFields (common/facts/list_fields.h).
#pragma once

#include <absl/strings/string_view.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace traind {

// The wire names of an enum's values: names[i] is the name of the value i.
struct EnumNames {
  const char* const* names;
  int count;
  int unknown;  // the value that a name or a number outside the list becomes
};

// Reads and writes an enum's variable without knowing its type. Ownership: the variable
// outlives it. Threads: as the variable.
class EnumField {
 public:
  template <class E>
  EnumField(E* value, const EnumNames& names)
      : value_(value),
        names_(&names),
        get_([](const void* at) { return static_cast<int>(*static_cast<const E*>(at)); }),
        set_([](void* at, int number) { *static_cast<E*>(at) = static_cast<E>(number); }) {}

  int number() const { return get_(value_); }
  void set_number(int number) const {
    set_(value_, number >= 0 && number < names_->count ? number : names_->unknown);
  }
  const char* name() const { return names_->names[number()]; }
  void set_name(absl::string_view name) const {
    int number = 0;
    while (number < names_->count && name != names_->names[number]) ++number;
    set_number(number);
  }
  int count() const { return names_->count; }

 private:
  void* value_;
  const EnumNames* names_;
  int (*get_)(const void*);
  void (*set_)(void*, int);
};

struct Field;
// Where a field's value is. The last one is a struct inside the struct.
using FieldValue =
    std::variant<bool*, int*, int64_t*, uint64_t*, double*, std::string*, std::vector<std::string>*,
                 std::vector<double>*, EnumField, std::vector<Field>>;

// Ownership: points into the struct that listed it, which outlives it.
struct Field {
  const char* name;  // on the wire
  FieldValue value;
};

// The fields of a struct that is only read. The caller must not write through them.
template <class M>
std::vector<Field> ReadableFields(const M& message) {
  return const_cast<M&>(message).Fields();
}

}  // namespace traind
