// The address of this machine by which another one reaches it.
// Threads: safe.
#pragma once

#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>

#include <string>

namespace traind {

// Returns the numeric address from which this machine sends to host_port ("10.0.0.1:7070",
// "[::1]:7070", "name:7070"), by its routes. Nothing is sent.
// Errors: InvalidArgument = not HOST:PORT; Unavailable = the name or the route is not there.
absl::StatusOr<std::string> LocalAddressTowards(absl::string_view host_port);

// Whether it names an address of this machine.
bool IsLocalAddress(const std::string& host);

}  // namespace traind
