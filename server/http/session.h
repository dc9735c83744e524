// The token of a browser's user, as a cookie: pages cannot send a header with streams and
// downloads.
#pragma once

#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>

#include <string>

#include "server/http/message.h"

namespace traind {

inline constexpr char kSessionPath[] = "/session";

// The header Authorization; without one, the token of the cookie as "Bearer TOKEN", or nothing.
std::string AuthorizationOf(const HttpRequest& request);

// The token that the body of a sign-in names, as "Bearer TOKEN". InvalidArgument: it is no token.
absl::StatusOr<std::string> TokenOfBody(const HttpRequest& request);

// The header Set-Cookie for "Bearer TOKEN"; nothing: signs out. No script reads the cookie, no page
// of another site sends it, and it goes when the browser is closed. secure: it travels by TLS
// alone.
std::string SessionCookie(absl::string_view authorization, bool secure);

}  // namespace traind
