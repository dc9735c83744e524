// Addresses that people give on a command line.
#pragma once

#include <absl/status/status.h>
#include <absl/strings/string_view.h>

#include <string>

namespace traind {

// Checks that `address` is HOST:PORT with a port of at least `least_port`. gRPC accepts more forms
// than that, and for some of them silently uses another port than the one that was meant. Errors:
// InvalidArgument: "'localhost' is not HOST:PORT".
absl::Status CheckHostPort(absl::string_view address, int least_port);

// Checks HOST:PORT or several of them with commas in between. Errors: as CheckHostPort.
absl::Status CheckHostPorts(absl::string_view addresses, int least_port);

// The host of HOST:PORT, without the brackets of "[::1]:7070".
std::string HostOf(absl::string_view address);

}  // namespace traind
