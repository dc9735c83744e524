#pragma once

namespace traind {

// Returns a free TCP port for a process that will listen on it soon, or 0 where there is none.
// This process holds the port until 256 others were reserved, so that the kernel gives it to nobody
// else. Whoever listens on it sets SO_REUSEADDR. Threads: safe.
int ReservePort();

// Whether a process could listen on that TCP port now. 0 is no port. Threads: safe.
bool PortIsFree(int port);

}  // namespace traind
