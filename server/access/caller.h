// Who calls.
#pragma once

#include <string>

#include "server/access/roles.h"

namespace traind {

struct Caller {
  // The token's name; empty where nobody needs one (loopback, --insecure): such a caller may do
  // everything.
  std::string name;
  Role role = Role::kAdmin;

  bool known() const { return !name.empty(); }
  // Whether the caller may change a Job of this owner.
  bool MayChange(const std::string& owner) const {
    return !known() || role == Role::kAdmin || owner == name;
  }
};

}  // namespace traind
