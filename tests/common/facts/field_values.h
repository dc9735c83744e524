// Fills and shows structs that list their fields, whatever fields they are, so that a test of
// a conversion needs no line for each of them.
#pragma once

#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>

#include <map>
#include <string>
#include <vector>

#include "common/facts/field.h"

namespace traind {

inline void Fill(const std::vector<Field>& fields, int& next);

// Gives each field another value, none of them its default.
struct Filler {
  int& next;
  void operator()(bool* value) const { *value = !*value; }
  void operator()(int* value) const { *value = ++next; }
  void operator()(int64_t* value) const { *value = int64_t{1} << 40 | ++next; }
  void operator()(uint64_t* value) const {
    *value = uint64_t{1} << 63 | static_cast<unsigned>(++next);
  }
  void operator()(double* value) const { *value = ++next + 0.25; }
  void operator()(std::string* value) const { *value = absl::StrCat("text ", ++next); }
  void operator()(std::vector<std::string>* value) const {
    *value = {absl::StrCat("one ", ++next), absl::StrCat("two ", ++next)};
  }
  void operator()(std::vector<double>* value) const { *value = {++next + 0.25, ++next + 0.25}; }
  void operator()(const EnumField& value) const {
    value.set_number((value.number() + 1) % value.count());
  }
  void operator()(const std::vector<Field>& inner) const { Fill(inner, next); }
};

inline void Fill(const std::vector<Field>& fields, int& next) {
  for (const Field& field : fields) std::visit(Filler{next}, field.value);
}

// A message with every field set.
template <class M>
M Filled() {
  M message{};
  int next = 100;
  Fill(message.Fields(), next);
  return message;
}

inline std::map<std::string, std::string> Shown(const std::vector<Field>& fields);

struct Shower {
  template <class T>
  std::string operator()(const T* value) const {
    if constexpr (std::is_same_v<T, std::vector<std::string>> ||
                  std::is_same_v<T, std::vector<double>>) {
      return absl::StrCat("[", absl::StrJoin(*value, "|"), "]");
    } else {
      return absl::StrCat(*value);
    }
  }
  std::string operator()(const EnumField& value) const {
    return absl::StrCat(value.number(), " ", value.name());
  }
  std::string operator()(const std::vector<Field>& inner) const {
    return absl::StrJoin(Shown(inner), ",", absl::PairFormatter("="));
  }
};

// Returns the values by name, as text.
inline std::map<std::string, std::string> Shown(const std::vector<Field>& fields) {
  std::map<std::string, std::string> shown;
  for (const Field& field : fields) shown[field.name] = std::visit(Shower{}, field.value);
  return shown;
}
template <class M>
std::map<std::string, std::string> Shown(const M& message) {
  return Shown(ReadableFields(message));
}

}  // namespace traind
