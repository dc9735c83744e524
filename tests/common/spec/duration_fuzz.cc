// Reads any bytes as a duration and as a time: they are refused, or survive a round trip.
#include <absl/strings/string_view.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "common/base/duration.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto duration = traind::DurationFromText(text); duration.ok()) {
    if (*duration < absl::ZeroDuration()) std::abort();
    // The text has two units, rounded down: it is never more, and a fixed point.
    const std::string shown = traind::DurationToText(*duration);
    const auto again = traind::DurationFromText(shown);
    if (!again.ok() || *again > *duration || traind::DurationToText(*again) != shown) std::abort();
  }
  if (const auto time = traind::TimestampFromText(text); time.ok()) {
    const auto again = traind::TimestampFromText(traind::TimestampToText(*time));
    if (again.ok() && *time - *again >= absl::Milliseconds(1)) std::abort();
  }
  return 0;
}
