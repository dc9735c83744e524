// Decoding any line ends with a message or an error, and a decoded message encodes to a line that
// decodes again to the same text.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "worker/rank_protocol/messages.h"

namespace {

template <class Decode>
void Check(absl::string_view line, Decode decode) {
  const auto message = decode(line);
  if (!message.ok()) return;
  const std::string text = traind::rank_protocol::Encode(*message);
  const auto again = decode(text);
  // Replaced bytes may make a line longer than the limit.
  if (text.size() > traind::rank_protocol::kMaxLineBytes) return;
  if (!again.ok() || traind::rank_protocol::Encode(*again) != text) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view line(reinterpret_cast<const char*>(data), size);
  Check(line, [](absl::string_view text) { return traind::rank_protocol::DecodeToProcess(text); });
  Check(line,
        [](absl::string_view text) { return traind::rank_protocol::DecodeFromProcess(text); });
  return 0;
}
