#include "common/wire/channel_credentials.h"

#include <absl/strings/ascii.h>
#include <absl/strings/str_cat.h>

#include "common/base/durable_file.h"
#include "common/base/secret_file.h"
#include "common/base/status_macros.h"
#include "common/base/tls_files.h"

namespace traind {

absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> MakeChannelCredentials(
    const ChannelSecurity& security) {
  if (security.tls_dir.empty()) {
    if (security.token_file.empty()) return grpc::InsecureChannelCredentials();
    return absl::InvalidArgumentError(
        "a token needs --tls DIR, the folder with ca.pem: it is not sent over a connection that is "
        "not encrypted");
  }
  const auto path = [&](const char* name) { return absl::StrCat(security.tls_dir, "/", name); };
  grpc::SslCredentialsOptions options;
  ASSIGN_OR_RETURN(options.pem_root_certs, ReadFile(path(kTlsCa)));
  if (security.worker) {
    ASSIGN_OR_RETURN(options.pem_cert_chain, ReadFile(path(kTlsWorker)));
    ASSIGN_OR_RETURN(options.pem_private_key, ReadSecretFile(path(kTlsWorkerKey)));
  }
  auto channel = grpc::SslCredentials(options);
  if (security.token_file.empty()) return channel;
  ASSIGN_OR_RETURN(const std::string text, ReadSecretFile(security.token_file));
  const std::string token(absl::StripAsciiWhitespace(text));
  return grpc::CompositeChannelCredentials(channel, grpc::AccessTokenCredentials(token));
}

}  // namespace traind
