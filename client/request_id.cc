#include "client/request_id.h"

#include <absl/random/random.h>
#include <absl/strings/str_format.h>

#include <cstdint>

namespace traind {

std::string RandomRequestId() {
  absl::BitGen random;
  return absl::StrFormat("trainctl-%016x%016x", absl::Uniform<uint64_t>(random),
                         absl::Uniform<uint64_t>(random));
}

}  // namespace traind
