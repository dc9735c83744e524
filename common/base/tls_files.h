// The names of the files that `traind init-tls` makes in a folder.
#pragma once

namespace traind {

inline constexpr char kTlsCa[] = "ca.pem";
inline constexpr char kTlsCaKey[] = "ca.key";
inline constexpr char kTlsServer[] = "server.pem";
inline constexpr char kTlsServerKey[] = "server.key";
inline constexpr char kTlsWorker[] = "worker.pem";
inline constexpr char kTlsWorkerKey[] = "worker.key";

}  // namespace traind
