// Takes connections from a listening socket and hands them to a gRPC server.
//
// gRPC 1.51 stops listening for good when a connection meets the limit of descriptors. This one
// waits until there are some again, and leaves the last ones to files (common/base/descriptors.h).
#pragma once

#include <absl/time/time.h>
#include <grpcpp/server_builder.h>

#include <memory>
#include <thread>

namespace traind {

// Threads: one of its own, from Start to the end of Stop. The rest is confined to one thread.
class Acceptor {
 public:
  using Server = grpc::experimental::ExternalConnectionAcceptor;

  // listener: of a stream socket, non-blocking; it is closed at the end.
  Acceptor(int listener, std::unique_ptr<Server> server);
  ~Acceptor();

  // REQUIRES: the gRPC server runs.
  void Start();
  // Takes no more connections. Those that were handed on stay.
  void Stop();

 private:
  void Run();
  // Takes what waits. False: descriptors ran out.
  bool AcceptAll();
  void TellRefusal();

  const int listener_;
  const std::unique_ptr<Server> server_;
  int stop_ = -1;              // an eventfd, readable once it is to stop
  absl::Duration tell_again_;  // on the monotonic clock; of the thread
  std::thread thread_;
};

}  // namespace traind
