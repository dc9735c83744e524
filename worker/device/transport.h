// The way in which values travel between the ranks of a gang.
#pragma once

#include <absl/strings/string_view.h>

#include <optional>

namespace traind {

enum class Transport {
  kAuto,          // GPUs: NCCL; else shared memory if all ranks are on one host; else Gloo
  kSharedMemory,  // fails if ranks are on several hosts
  kGloo,
  kNccl,
};

inline const char* TransportName(Transport transport) {
  switch (transport) {
    case Transport::kAuto:
      return "auto";
    case Transport::kSharedMemory:
      return "shm";
    case Transport::kGloo:
      return "gloo";
    case Transport::kNccl:
      return "nccl";
  }
  return "";
}

inline std::optional<Transport> TransportByName(absl::string_view name) {
  for (const Transport transport :
       {Transport::kAuto, Transport::kSharedMemory, Transport::kGloo, Transport::kNccl}) {
    if (name == TransportName(transport)) return transport;
  }
  return std::nullopt;
}

}  // namespace traind
