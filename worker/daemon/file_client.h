// RemoteFiles over gRPC.
#pragma once

#include <absl/status/statusor.h>

#include <memory>
#include <string>

#include "common/wire/channel_credentials.h"
#include "worker/daemon/remote_files.h"

namespace traind::worker {

// Connects when it is first used, and again whenever it must; every call has a time limit that
// grows with the file. Errors: those of MakeChannelCredentials.
absl::StatusOr<std::unique_ptr<RemoteFiles>> ConnectFiles(const std::string& address,
                                                          const ChannelSecurity& security);

}  // namespace traind::worker
