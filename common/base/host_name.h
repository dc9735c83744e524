// The name of this machine.
// Threads: safe.
#pragma once

#include <string>

namespace traind {

// As the kernel has it, cut at 255 bytes; "localhost" if it has none.
std::string HostName();

}  // namespace traind
