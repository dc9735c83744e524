#include "server/http/session.h"

#include <absl/strings/ascii.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_split.h>
#include <absl/strings/strip.h>

#include <algorithm>

namespace traind {
namespace {

constexpr char kCookie[] = "traind_session";
constexpr char kScheme[] = "Bearer ";
constexpr size_t kMostToken = 200;

bool IsToken(absl::string_view text) {
  return !text.empty() && text.size() <= kMostToken &&
         std::all_of(text.begin(), text.end(), [](char c) {
           return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_';
         });
}

}  // namespace

std::string AuthorizationOf(const HttpRequest& request) {
  const absl::string_view header = request.Header("authorization");
  if (!header.empty()) return std::string(header);
  for (absl::string_view pair : absl::StrSplit(request.Header("cookie"), ';')) {
    pair = absl::StripAsciiWhitespace(pair);
    if (absl::ConsumePrefix(&pair, absl::StrCat(kCookie, "=")) && IsToken(pair)) {
      return absl::StrCat(kScheme, pair);
    }
  }
  return "";
}

absl::StatusOr<std::string> TokenOfBody(const HttpRequest& request) {
  const absl::string_view token = absl::StripAsciiWhitespace(request.body);
  if (IsToken(token)) return absl::StrCat(kScheme, token);
  return absl::InvalidArgumentError(
      "that is no token; paste what `traind token add` wrote: traind_ and 64 characters");
}

std::string SessionCookie(absl::string_view authorization, bool secure) {
  absl::ConsumePrefix(&authorization, kScheme);
  return absl::StrCat(kCookie, "=", authorization, "; Path=/; HttpOnly; SameSite=Strict",
                      secure ? "; Secure" : "", authorization.empty() ? "; Max-Age=0" : "");
}

}  // namespace traind
