// Who may call: no page of another site, by whatever name it reached this address.
#pragma once

#include <absl/strings/string_view.h>

#include <string>
#include <vector>

#include "server/http/message.h"

namespace traind {

// Decides by a request's headers.
// Threads: immutable.
class Guard {
 public:
  // bound: the host that the server listens on; names: further ones under which it is reached.
  Guard(std::string bound, std::vector<std::string> names);

  // Whether the Host header names this server. A page whose own name was made to lead here (DNS
  // rebinding) still sends that name.
  bool AllowsHost(absl::string_view host) const;
  // Whether the request comes from a page of this server, or from no page at all.
  static bool AllowsOrigin(const HttpRequest& request);

 private:
  std::vector<std::string> hosts_;  // lower case
  bool any_address_ = false;        // it listens on all of them
};

// Whether the method may change something.
bool ChangesState(absl::string_view method);

}  // namespace traind
