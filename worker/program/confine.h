// Takes from this process, and from all that it starts, what its user does not want it to have.
#pragma once

#include <string>
#include <vector>

namespace traind {

// The process gets a network of its own, in which there is only its loopback. Returns 0, or errno.
// REQUIRES: it has one thread.
int LeaveNetwork();

// From now on the process writes to nothing but these folders, and to /tmp, /var/tmp and /dev; that
// a folder is missing is no error. Uses Landlock. Returns 0, or errno: EOPNOTSUPP or ENOSYS where
// the kernel has none. REQUIRES: no new privileges (PR_SET_NO_NEW_PRIVS).
int WriteOnlyTo(const std::vector<std::string>& folders);

}  // namespace traind
