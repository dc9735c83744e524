// For the .cc files that define Fields(): a list that lacks a member does not compile.
//
//   std::vector<Field> Probe::Fields() {
//     return ListFields(*this, {TRAIND_FIELD(step_s), TRAIND_FIELD(step_p90_s)});
//   }
#pragma once

#include <cstddef>
#include <type_traits>
#include <utility>
#include <vector>

#include "common/facts/field.h"

#define TRAIND_FIELD(member) \
  ::traind::Field { #member, ::traind::ValueOf(member) }

namespace traind {

template <class T>
FieldValue ValueOf(T& member) {
  if constexpr (std::is_enum_v<T>) {
    return EnumField(&member, NamesOf(member));
  } else if constexpr (std::is_constructible_v<FieldValue, T*>) {
    return &member;
  } else {
    return member.Fields();
  }
}

namespace internal {

struct Anything {
  template <class T>
  operator T() const;
};

template <class M, class... Values>
constexpr auto HasRoomFor(int) -> decltype(M{std::declval<Values>()...}, true) {
  return true;
}
template <class M, class... Values>
constexpr bool HasRoomFor(long) {
  return false;
}

// The members of an aggregate without base classes: as many as can be initialised.
template <class M, class... Values>
constexpr size_t MemberCount() {
  if constexpr (HasRoomFor<M, Values..., Anything>(0)) {
    return MemberCount<M, Values..., Anything>();
  } else {
    return sizeof...(Values);
  }
}

}  // namespace internal

template <class M, size_t N>
std::vector<Field> ListFields(const M&, const Field (&fields)[N]) {
  static_assert(N == internal::MemberCount<M>(), "Fields() lists every member once");
  return {fields, fields + N};
}

}  // namespace traind
