// An HTTP request as it was received whole, and what is answered to it.
#pragma once

#include <absl/base/thread_annotations.h>
#include <absl/strings/string_view.h>
#include <absl/synchronization/mutex.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace traind {

struct HttpRequest {
  std::string method;
  std::string path;                                        // percent-decoded, without the query
  std::vector<std::pair<std::string, std::string>> query;  // decoded, as sent
  std::map<std::string, std::string> headers;              // names in lower case
  std::string body;
  std::string peer{};  // as gRPC names it: "ipv4:127.0.0.1:43210", "ipv6:[::1]:43210"

  // Empty: there is no such header.
  absl::string_view Header(const std::string& name) const {
    const auto it = headers.find(name);
    return it == headers.end() ? absl::string_view() : absl::string_view(it->second);
  }
};

// The body of an answer that is written bit by bit, by any thread.
// Threads: safe.
class HttpStream {
 public:
  // Adds a part. When the reader is slow, older parts that it has not begun are dropped beyond
  // kMostParts: each part tells the whole state.
  void Push(std::shared_ptr<const std::string> part) ABSL_LOCKS_EXCLUDED(mutex_);
  // Ends the answer after the parts that wait.
  void End() ABSL_LOCKS_EXCLUDED(mutex_);
  // Whether the client is gone or has got all.
  bool closed() const ABSL_LOCKS_EXCLUDED(mutex_);

  // The server's side. `sleep` stops the reading of this stream, `wake` goes on with it; both are
  // called under the stream's lock.
  void Attach(std::function<void()> sleep, std::function<void()> wake) ABSL_LOCKS_EXCLUDED(mutex_);
  // Copies up to `most` bytes. 0: nothing waits, and `sleep` was called; -1: that was all.
  int64_t Read(char* to, size_t most) ABSL_LOCKS_EXCLUDED(mutex_);
  // Nobody reads any more.
  void Close() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  static constexpr size_t kMostParts = 8;

  void Wake() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable absl::Mutex mutex_;
  std::deque<std::shared_ptr<const std::string>> parts_ ABSL_GUARDED_BY(mutex_);
  size_t sent_ ABSL_GUARDED_BY(mutex_) = 0;  // of the first part
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  bool sleeping_ ABSL_GUARDED_BY(mutex_) = false;
  std::function<void()> sleep_ ABSL_GUARDED_BY(mutex_);
  std::function<void()> wake_ ABSL_GUARDED_BY(mutex_);
};

struct HttpResponse {
  int status = 200;
  std::string content_type;
  std::vector<std::pair<std::string, std::string>> headers;
  // The body is one of these; none: it is empty.
  std::shared_ptr<const std::string> body;
  std::shared_ptr<HttpStream> stream;
  int file = -1;  // a descriptor, which the server closes
  int64_t file_bytes = 0;
};

// Answers a request; called exactly once, from any thread.
using Respond = std::function<void(HttpResponse)>;

}  // namespace traind
