// Single signed requests to a bucket (AWS Signature Version 4, by libcurl), tried again where that
// may help.
#pragma once

#include <absl/base/thread_annotations.h>
#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>
#include <absl/synchronization/mutex.h>
#include <absl/time/time.h>

#include <atomic>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "server/objects/curl_library.h"
#include "server/objects/s3_location.h"

namespace traind {

struct S3Request {
  std::string method = "GET";
  std::string key;                                         // with the prefix; may be empty
  std::vector<std::pair<std::string, std::string>> query;  // sorted by name
  std::vector<std::string> headers;                        // "name: value"
  // What is sent: parts, one after the other, or so many bytes of an open file from an offset on.
  std::vector<absl::string_view> parts;
  int from_fd = -1;
  int64_t from_offset = 0, from_bytes = 0;
  std::string sha256;  // of what is sent from the file
  // Where the answer's content goes; -1: into S3Answer::content, up to 64 MiB.
  int to_fd = -1;
  // Of one try. A file may take longer, as long as bytes move.
  absl::Duration limit = absl::Seconds(10);
  bool waited_for = false;  // a file, too, is given up after 3 s without a byte
  int tries = 5;            // at most; none is begun later than 6 s after the first
  const std::atomic<bool>* stop = nullptr;
};

struct S3Answer {
  int64_t code = 0;  // of HTTP
  std::string content;
  std::string mtime;  // as the header x-amz-meta-mtime has it
  std::string etag;
  bool repeated = false;  // an earlier try may have been carried out
};

// Threads: safe.
class S3Client {
 public:
  // FailedPrecondition: there are no credentials now, or no libcurl.
  static absl::StatusOr<std::unique_ptr<S3Client>> Create(S3Location location, Environ environ);
  ~S3Client();

  const S3Location& location() const { return location_; }
  // Returns answers with the codes 2xx, 404, 409 and 412. Other codes are errors:
  // FailedPrecondition (credentials, rights, the bucket), Unavailable (the rest, and the
  // connection), Cancelled.
  absl::StatusOr<S3Answer> Call(const S3Request& request) const;

 private:
  S3Client(const CurlLibrary* curl, S3Location location, Environ environ)
      : curl_(*curl), location_(std::move(location)), environ_(std::move(environ)) {}
  // Sets again: whether another try may help.
  absl::StatusOr<S3Answer> TryOnce(const S3Request& request, bool* again) const;
  CURL* Take() const ABSL_LOCKS_EXCLUDED(mutex_);
  void GiveBack(CURL* handle) const ABSL_LOCKS_EXCLUDED(mutex_);

  const CurlLibrary& curl_;
  const S3Location location_;
  const Environ environ_;
  mutable absl::Mutex mutex_;
  mutable std::vector<CURL*> idle_ ABSL_GUARDED_BY(mutex_);  // with their connections
};

}  // namespace traind
