// Looks at a user's program before anything of it is scheduled.
#pragma once

#include <absl/status/status.h>

#include "common/job_rules/user_program.h"

namespace traind {

// Checks that the folder is there, that the command can be started (found by the PATH that the spec
// gives it, or in the folder), and, where it is Python, that the script is there and can import the
// modules that it names at its top; where the spec asks for a GPU, also that PyTorch can use one.
// Errors: UserError() names the field and what to do.
absl::Status CheckUserProgram(const UserProgram& program);

}  // namespace traind
