// How values travel between the ranks of a gang.
#pragma once

#include <absl/strings/string_view.h>

#include <optional>

namespace traind {

enum class Transport {
  kAuto,          // NCCL on GPUs; else shared memory where all ranks are on one host; else Gloo
  kSharedMemory,  // an error where ranks are on several hosts
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
