// The processes that a process has started, as the kernel lists them in /proc.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace traind {

// The processes below this one, parents before their children. Those whose parents have ended are
// among them where `root` is a subreaper (PR_SET_CHILD_SUBREAPER). Threads: safe.
std::vector<pid_t> Descendants(pid_t root);

// Whether a process has a handler of its own for this signal: others would die of it.
bool Catches(pid_t pid, int signal);

// Kills all descendants of this process and reaps its children, until none is left or two seconds
// are over. Returns how many were there at first. REQUIRES: no other thread waits for children.
int KillDescendants();

// Kills all processes of this user whose environment had this NAME=value when they began; returns
// their number.
int KillByVariable(const std::string& variable);

}  // namespace traind
