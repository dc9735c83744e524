// RemoteFiles over gRPC.
#pragma once

#include <absl/status/statusor.h>

#include <functional>
#include <memory>
#include <string>

#include "common/wire/channel_credentials.h"
#include "worker/daemon/remote_files.h"

namespace traind::worker {

// Connects when it is first used, and again whenever it must; every call has a time limit that
// grows with the file. current: which of the addresses a call goes to, from 0 on; any thread calls
// it. Errors: those of MakeChannelCredentials.
absl::StatusOr<std::unique_ptr<RemoteFiles>> ConnectFiles(const std::string& addresses,
                                                          const ChannelSecurity& security,
                                                          std::function<size_t()> current);

}  // namespace traind::worker
