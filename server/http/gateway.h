// traind's HTTP side: the calls as JSON, events, the page, health.
#pragma once

#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "server/access/caller.h"
#include "server/http/json_api.h"
#include "server/loop/figures.h"

namespace traind {

class ControlLoop;
class TrainingCalls;

struct HttpGatewayOptions {
  std::string address;             // HOST:PORT; port 0: any free one
  std::string tls_dir;             // of the certificate; empty: plain HTTP
  std::vector<std::string> names;  // further names of this host in requests
  std::string data_root;           // relative paths of specs are below it
  // The figures of the calls over gRPC.
  std::function<CallFigures::Counts()> grpc_figures;
  // Who makes a call of TrainingService, and whether that caller may; empty: all may call.
  std::function<absl::StatusOr<Caller>(const std::string& rpc, const HttpRequest& request)> admit;
  bool tokens = false;  // admit looks at tokens, which may be revoked while a stream is open
  RecordCall record;    // empty: nobody records
};

// Threads: confined to one. Ownership: calls and loop outlive it.
class HttpGateway {
 public:
  // Errors: as HttpServer::Listen.
  static absl::StatusOr<std::unique_ptr<HttpGateway>> Start(const HttpGatewayOptions& options,
                                                            TrainingCalls* calls,
                                                            ControlLoop* loop);
  ~HttpGateway();

  int port() const;
  // Ends streams, answers what is open, and closes the port.
  void Stop();

 private:
  class Impl;
  explicit HttpGateway(std::unique_ptr<Impl> impl);
  const std::unique_ptr<Impl> impl_;
};

}  // namespace traind
