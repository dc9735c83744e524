#include "common/base/host_port.h"

#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_split.h>
#include <absl/strings/strip.h>

#include "common/base/status_macros.h"

namespace traind {

absl::Status CheckHostPort(absl::string_view address, int least_port) {
  constexpr int kMostPort = 65535;
  const size_t colon = address.rfind(':');
  if (colon == 0 || colon == address.npos) {
    return absl::InvalidArgumentError(absl::StrCat("'", address, "' is not HOST:PORT"));
  }
  int port = 0;
  if (!absl::SimpleAtoi(address.substr(colon + 1), &port) || port < least_port ||
      port > kMostPort) {
    return absl::InvalidArgumentError(absl::StrCat("'", address, "': '", address.substr(colon + 1),
                                                   "' is not a port from ", least_port, " to ",
                                                   kMostPort));
  }
  return absl::OkStatus();
}

absl::Status CheckHostPorts(absl::string_view addresses, int least_port) {
  for (const absl::string_view address : absl::StrSplit(addresses, ',')) {
    RETURN_IF_ERROR(CheckHostPort(address, least_port));
  }
  return absl::OkStatus();
}

std::string HostOf(absl::string_view address) {
  absl::string_view host = address.substr(0, address.rfind(':'));
  if (absl::ConsumePrefix(&host, "[")) absl::ConsumeSuffix(&host, "]");
  return std::string(host);
}

}  // namespace traind
