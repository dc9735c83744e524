#include "common/base/bytes_text.h"

#include <absl/strings/ascii.h>
#include <absl/strings/match.h>
#include <absl/strings/numbers.h>
#include <absl/strings/str_format.h>

#include <cmath>

namespace traind {

std::string BytesText(int64_t bytes) {
  const char* const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
  auto value = static_cast<double>(bytes);
  int unit = 0;
  for (; value >= 1024 && unit < 4; ++unit) value /= 1024;
  return absl::StrFormat("%.*f %s", unit == 0 ? 0 : 1, value, units[unit]);
}

std::optional<int64_t> ParseBytes(absl::string_view text) {
  struct Unit {
    absl::string_view name;
    double bytes;
  };
  constexpr double kKi = 1024, kK = 1000;
  constexpr Unit kUnits[] = {
      {"KiB", kKi},
      {"MiB", kKi * kKi},
      {"GiB", kKi * kKi * kKi},
      {"KB", kK},
      {"MB", kK * kK},
      {"GB", kK * kK * kK},
      {"TB", kK * kK * kK * kK},
      {"TiB", kKi * kKi * kKi * kKi},
  };
  for (const Unit& unit : kUnits) {
    if (!absl::EndsWithIgnoreCase(text, unit.name)) continue;
    const absl::string_view number =
        absl::StripAsciiWhitespace(text.substr(0, text.size() - unit.name.size()));
    double value = 0;
    if (!absl::SimpleAtod(number, &value) || !std::isfinite(value)) return std::nullopt;
    const double bytes = std::round(value * unit.bytes);
    if (bytes < 1 || bytes > 9e18) return std::nullopt;
    return static_cast<int64_t>(bytes);
  }
  return std::nullopt;
}

}  // namespace traind
