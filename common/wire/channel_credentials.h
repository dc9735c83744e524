// A client's side of TLS and tokens.
#pragma once

#include <absl/status/statusor.h>
#include <grpcpp/security/credentials.h>

#include <memory>
#include <string>

namespace traind {

struct ChannelSecurity {
  std::string tls_dir;     // has ca.pem; empty: the connection is not encrypted
  std::string token_file;  // empty: no token is sent
  bool worker = false;     // presents worker.pem, too
};

// Returns credentials that send the token with each call.
// Errors: those of reading; InvalidArgument: a token without TLS; FailedPrecondition: a secret
// that other users of this machine may read.
absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> MakeChannelCredentials(
    const ChannelSecurity& security);

}  // namespace traind
