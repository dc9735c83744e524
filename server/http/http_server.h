// The HTTP port: reads requests, keeps the limits, writes answers. What they mean is the handler's.
#pragma once

#include <absl/base/thread_annotations.h>
#include <absl/container/flat_hash_map.h>
#include <absl/status/statusor.h>
#include <absl/synchronization/mutex.h>
#include <absl/time/time.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "common/base/timed_wait.h"
#include "server/http/guard.h"
#include "server/http/message.h"

struct MHD_Daemon;

namespace traind {

struct HttpServerOptions {
  std::string address;             // HOST:PORT; port 0: any free one
  std::vector<std::string> names;  // further names of this host in requests
  // With server.pem and server.key, which may be exchanged at any time; empty: plain HTTP.
  std::string tls_dir;
  size_t most_body_bytes = 4 << 20;
  unsigned most_connections = 512;
  // From the start of a connection, or the end of its last request, to the last byte of the next
  // request.
  absl::Duration receive_within = absl::Seconds(30);
  absl::Duration send_stall = absl::Seconds(30);  // without progress
  absl::Duration reread_tls = absl::Seconds(5);   // how often it looks for other certificates
};

// One thread serves all connections (epoll); a request that is being worked on, and a stream
// without news, hold none. Threads: Start and Stop from one. The handler is called on the server's
// thread and must not block; it answers from any thread. Errors: Unavailable (the port is taken),
// InvalidArgument (no such host).
class HttpServer {
 public:
  using Handler = std::function<void(std::shared_ptr<const HttpRequest>, Respond)>;

  static absl::StatusOr<std::unique_ptr<HttpServer>> Listen(const HttpServerOptions& options,
                                                            Handler handler);
  ~HttpServer();

  int port() const { return port_; }
  int connections() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Answers what is open, and closes all connections.
  void Stop();

 private:
  friend struct HttpCallbacks;
  struct Exchange;
  struct Connection;

  HttpServer(HttpServerOptions options, Guard guard, Handler handler);
  struct Certificate;

  absl::StatusOr<Certificate> ReadCertificate() const;
  // Takes the listening socket, and closes it on errors.
  absl::StatusOr<MHD_Daemon*> StartDaemon(int listener, Certificate certificate) const;
  void Sweep();
  void CloseSlowOnes() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Gives new connections the certificate that the files have now; those that are open keep theirs.
  void RenewCertificate();
  // An error that the server itself answers with, or nullptr.
  std::shared_ptr<HttpResponse> Refusal(const HttpRequest& request) const;

  const HttpServerOptions options_;
  const Guard guard_;
  const Handler handler_;
  // The sweeper's thread changes these four; the owner's does before its start and after its end.
  MHD_Daemon* daemon_ = nullptr;
  std::vector<MHD_Daemon*> former_;  // with connections under earlier certificates
  std::unique_ptr<Certificate> certificate_;
  std::string told_;  // why the certificate could not be read
  int port_ = 0;

  mutable absl::Mutex mutex_;
  TimedCondVar stopped_;  // after a change of stopping_
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  absl::flat_hash_map<Exchange*, std::shared_ptr<Exchange>> exchanges_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<Connection*, std::unique_ptr<Connection>> connections_
      ABSL_GUARDED_BY(mutex_);
  std::thread sweeper_;
};

}  // namespace traind
