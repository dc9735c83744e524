#include "server/objects/s3_location.h"

#include <absl/status/status.h>
#include <absl/strings/ascii.h>
#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>
#include <absl/strings/str_split.h>
#include <absl/strings/strip.h>

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "common/base/durable_file.h"
#include "common/base/status_macros.h"

namespace traind {
namespace {

constexpr size_t kLeastBucket = 3, kMostBucket = 63;

bool IsBucketName(absl::string_view name) {
  const auto fits = [](char c) {
    return absl::ascii_islower(static_cast<unsigned char>(c)) ||
           absl::ascii_isdigit(static_cast<unsigned char>(c)) || c == '-' || c == '.';
  };
  return name.size() >= kLeastBucket && name.size() <= kMostBucket &&
         std::all_of(name.begin(), name.end(), fits);
}

bool IsPrefixWord(absl::string_view word) {
  const auto fits = [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '.' || c == '_';
  };
  return !word.empty() && word != "." && word != ".." &&
         std::all_of(word.begin(), word.end(), fits);
}

std::string FirstOf(const Environ& environ, const std::vector<const char*>& names) {
  for (const char* const name : names) {
    if (std::string value = environ(name); !value.empty()) return value;
  }
  return "";
}

}  // namespace

std::string ProcessEnviron(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::string UrlEncoded(absl::string_view text, bool keep_slash) {
  std::string encoded;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (absl::ascii_isalnum(byte) || c == '-' || c == '.' || c == '_' || c == '~' ||
        (keep_slash && c == '/')) {
      encoded += c;
    } else {
      absl::StrAppendFormat(&encoded, "%%%02X", byte);
    }
  }
  return encoded;
}

absl::StatusOr<S3Location> ParseS3Location(absl::string_view text, const Environ& environ) {
  const auto wrong = [&](absl::string_view what) {
    return absl::InvalidArgumentError(absl::StrCat(text, ": ", what));
  };
  absl::string_view rest = text;
  if (!absl::ConsumePrefix(&rest, kS3Scheme)) return wrong("it does not begin with s3://");
  S3Location location;
  const size_t slash = rest.find('/');
  location.bucket = std::string(rest.substr(0, slash));
  if (!IsBucketName(location.bucket)) {
    return wrong("a bucket's name has 3 to 63 small letters, digits, '-' and '.'");
  }
  if (slash != rest.npos) {
    absl::string_view prefix = rest.substr(slash + 1);
    absl::ConsumeSuffix(&prefix, "/");
    if (!prefix.empty()) {
      for (const absl::string_view word : absl::StrSplit(prefix, '/')) {
        if (!IsPrefixWord(word)) {
          return wrong("a prefix has letters, digits, '-', '.' and '_' between single slashes");
        }
      }
      location.prefix = absl::StrCat(prefix, "/");
    }
  }
  location.region = FirstOf(environ, {"AWS_REGION", "AWS_DEFAULT_REGION"});
  if (location.region.empty()) location.region = "us-east-1";
  location.ca_file = environ("AWS_CA_BUNDLE");
  std::string endpoint = FirstOf(environ, {"AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"});
  if (!endpoint.empty()) {
    if (!absl::StartsWith(endpoint, "http://") && !absl::StartsWith(endpoint, "https://")) {
      return absl::InvalidArgumentError(
          absl::StrCat("AWS_ENDPOINT_URL: ", endpoint, " does not begin with http:// or https://"));
    }
    while (absl::EndsWith(endpoint, "/")) endpoint.pop_back();
    location.url = absl::StrCat(endpoint, "/", location.bucket);
  } else if (absl::StrContains(location.bucket, '.')) {
    // No certificate is valid for a name with more dots.
    location.url = absl::StrCat("https://s3.", location.region, ".amazonaws.com/", location.bucket);
  } else {
    location.url =
        absl::StrCat("https://", location.bucket, ".s3.", location.region, ".amazonaws.com");
  }
  return location;
}

absl::StatusOr<S3Credentials> ReadS3Credentials(const Environ& environ) {
  S3Credentials found = {environ("AWS_ACCESS_KEY_ID"), environ("AWS_SECRET_ACCESS_KEY"),
                         environ("AWS_SESSION_TOKEN")};
  if (!found.key.empty() && !found.secret.empty()) return found;
  std::string path = environ("AWS_SHARED_CREDENTIALS_FILE");
  if (path.empty()) path = absl::StrCat(environ("HOME"), "/.aws/credentials");
  std::string profile = environ("AWS_PROFILE");
  if (profile.empty()) profile = "default";
  const absl::Status none = absl::FailedPreconditionError(absl::StrCat(
      "no credentials for the bucket: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or give the "
      "profile ",
      profile, " in ", path));
  const auto text = ReadFile(path);
  if (absl::IsNotFound(text.status())) return none;
  RETURN_IF_ERROR(text.status());
  found = {};
  bool ours = false;
  for (const absl::string_view line : absl::StrSplit(*text, '\n')) {
    const absl::string_view words = absl::StripAsciiWhitespace(line);
    if (absl::StartsWith(words, "[")) {
      ours = words == absl::StrCat("[", profile, "]");
      continue;
    }
    const std::pair<absl::string_view, absl::string_view> parts =
        absl::StrSplit(words, absl::MaxSplits('=', 1));
    const absl::string_view name = absl::StripAsciiWhitespace(parts.first);
    const std::string value(absl::StripAsciiWhitespace(parts.second));
    if (!ours) continue;
    if (name == "aws_access_key_id") found.key = value;
    if (name == "aws_secret_access_key") found.secret = value;
    if (name == "aws_session_token") found.session = value;
  }
  if (found.key.empty() || found.secret.empty()) return none;
  return found;
}

}  // namespace traind
