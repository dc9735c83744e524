// The descriptors that the process may have.
#pragma once

#include <cstdint>

namespace traind {

// Raises the soft limit to the hard one. Programs that are started later inherit it.
void RaiseDescriptorLimit();

// The limit as it is now.
int64_t DescriptorLimit();

// Whether a descriptor that was just given to a client's connection is one of the last few, which
// files need. The kernel gives the lowest number that is free, so connections of which none is
// among the last leave these to files.
bool IsReservedDescriptor(int fd);

}  // namespace traind
