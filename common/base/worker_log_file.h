#pragma once

namespace traind {

// The standalone Worker appends its log to this file of the state folder.
inline constexpr char kWorkerLogFile[] = "worker.log";

}  // namespace traind
