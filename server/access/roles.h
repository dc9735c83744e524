// Who may call what: one table for gRPC and HTTP.
#pragma once

#include <absl/strings/string_view.h>

#include <optional>
#include <string>

namespace traind {

enum class Role { kViewer, kUser, kAdmin, kWorker };

// viewer, user, admin or worker.
std::string RoleName(Role role);
std::optional<Role> RoleFromName(absl::string_view name);

struct Need {
  bool open = false;  // needs no token
  Role role = Role::kAdmin;
  bool recorded = true;  // calls that succeed have a line in the audit log
};

// method: "/package.Service/Method", as gRPC names it. nullopt: the table lacks it, so nobody may
// call it.
std::optional<Need> NeedOf(absl::string_view method);

// A viewer reads; a user also submits and changes Jobs; an admin does all that clients may do; a
// Worker only attaches.
bool Satisfies(Role has, Role needed);

}  // namespace traind
