// Where a bucket is, and who may use it: s3://BUCKET/PREFIX and what the environment tells, by the
// names that the AWS tools use.
#pragma once

#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>

#include <functional>
#include <string>

namespace traind {

inline constexpr char kS3Scheme[] = "s3://";
inline bool IsBucket(absl::string_view artifacts) {
  return artifacts.substr(0, sizeof(kS3Scheme) - 1) == kS3Scheme;
}

struct S3Credentials {
  std::string key, secret;
  std::string session;  // a token of temporary ones; may be empty
};

struct S3Location {
  std::string bucket;
  std::string prefix;  // of all keys: empty, or words between slashes and a slash at the end
  std::string region;
  // Of the bucket, without a slash at the end: https://BUCKET.s3.REGION.amazonaws.com, or
  // ENDPOINT/BUCKET.
  std::string url;
  std::string ca_file;  // empty: the system's
};

// Returns a variable's value, or "".
using Environ = std::function<std::string(const char* name)>;
std::string ProcessEnviron(const char* name);

// Reads s3://BUCKET[/PREFIX] with AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL, AWS_REGION,
// AWS_DEFAULT_REGION (else us-east-1) and AWS_CA_BUNDLE. InvalidArgument: what is wrong.
absl::StatusOr<S3Location> ParseS3Location(absl::string_view text, const Environ& environ);

// Reads AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN; else the profile
// AWS_PROFILE (else `default`) of the file AWS_SHARED_CREDENTIALS_FILE (else ~/.aws/credentials).
// FailedPrecondition: there are none.
absl::StatusOr<S3Credentials> ReadS3Credentials(const Environ& environ);

// Percent-encodes all but letters, digits, '-', '.', '_' and '~', as signatures want it;
// keep_slash:
// '/' stays, too.
std::string UrlEncoded(absl::string_view text, bool keep_slash);

}  // namespace traind
