#include "server/http/guard.h"

#include <absl/strings/ascii.h>
#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <arpa/inet.h>

#include <algorithm>
#include <utility>

namespace traind {
namespace {

// "[::1]:80" and "LOCALHOST:80" without the port, in lower case. Empty: that is no host.
std::string HostOf(absl::string_view authority) {
  const size_t bracket = authority.rfind(']');
  const size_t colon = authority.rfind(':');
  if (colon != authority.npos && (bracket == authority.npos || colon > bracket)) {
    const absl::string_view port = authority.substr(colon + 1);
    if (port.find_first_not_of("0123456789") != port.npos) return "";
    authority = authority.substr(0, colon);
  }
  return absl::AsciiStrToLower(authority);
}

bool IsAddress(std::string host) {
  if (absl::StartsWith(host, "[") && absl::EndsWith(host, "]")) {
    host = host.substr(1, host.size() - 2);
  }
  in6_addr address;
  return inet_pton(AF_INET, host.c_str(), &address) == 1 ||
         inet_pton(AF_INET6, host.c_str(), &address) == 1;
}

}  // namespace

bool ChangesState(absl::string_view method) { return method != "GET" && method != "HEAD"; }

Guard::Guard(std::string bound, std::vector<std::string> names)
    : hosts_({"localhost", "127.0.0.1", "[::1]", absl::AsciiStrToLower(bound)}),
      any_address_(bound == "0.0.0.0" || bound == "[::]") {
  for (std::string& name : names) hosts_.push_back(absl::AsciiStrToLower(name));
}

bool Guard::AllowsHost(absl::string_view host) const {
  const std::string name = HostOf(host);
  if (name.empty()) return false;
  // An address is not a name that others could redirect.
  if (any_address_ && IsAddress(name)) return true;
  return std::find(hosts_.begin(), hosts_.end(), name) != hosts_.end();
}

bool Guard::AllowsOrigin(const HttpRequest& request) {
  const absl::string_view site = request.Header("sec-fetch-site");
  if (!site.empty() && site != "same-origin" && site != "none") return false;
  if (request.headers.count("origin") == 0) return true;  // programs send none
  const absl::string_view host = request.Header("host");
  const std::string origin = absl::AsciiStrToLower(request.Header("origin"));
  const std::string own = absl::AsciiStrToLower(host);
  return origin == absl::StrCat("http://", own) || origin == absl::StrCat("https://", own);
}

}  // namespace traind
