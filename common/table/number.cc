#include "common/table/number.h"

#include <absl/strings/match.h>

#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <string>

namespace traind {
namespace {

constexpr double kPowersOf10[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                  1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                  1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
constexpr uint64_t kExactIntegers = uint64_t{1} << 53;  // all below are doubles
constexpr ptrdiff_t kMaxFastDigits = 18;                // fit into 64 bits

inline bool IsDigit(char c) { return static_cast<unsigned char>(c - '0') < 10; }

// Whether [p, end) is digits[.digits][e[+-]digits] with a digit in front of or
// behind the point.
bool IsDecimal(const char* p, const char* end) {
  const char* const begin = p;
  while (p < end && IsDigit(*p)) ++p;
  ptrdiff_t digits = p - begin;
  if (p < end && *p == '.') {
    const char* const point = p++;
    while (p < end && IsDigit(*p)) ++p;
    digits += p - point - 1;
  }
  if (digits == 0) return false;
  if (p < end && (*p == 'e' || *p == 'E')) {
    ++p;
    if (p < end && (*p == '+' || *p == '-')) ++p;
    const char* const exponent = p;
    while (p < end && IsDigit(*p)) ++p;
    if (p == exponent) return false;
  }
  return p == end;
}

NumberKind ToFloat(double number, bool negative, float& value) {
  value = static_cast<float>(negative ? -number : number);
  return std::isfinite(value) ? NumberKind::kNumber : NumberKind::kNotFinite;
}

// What the fast path leaves: exponents, many digits, words.
NumberKind ParseSlowly(const char* p, const char* end, bool negative, float& value) {
  if (!IsDecimal(p, end)) {
    const absl::string_view word(p, static_cast<size_t>(end - p));
    return absl::EqualsIgnoreCase(word, "inf") || absl::EqualsIgnoreCase(word, "infinity")
               ? NumberKind::kNotFinite
               : NumberKind::kText;
  }
  double number = 0;
  if (std::from_chars(p, end, number).ec == std::errc::result_out_of_range) {
    // Too large or too small; from_chars does not say which.
    number = std::strtod(std::string(p, end).c_str(), nullptr);
  }
  return ToFloat(number, negative, value);
}

}  // namespace

NumberKind ParseNumber(absl::string_view text, float& value) {
  const char* p = text.data();
  const char* const end = p + text.size();
  const bool negative = p < end && *p == '-';
  if (p < end && (*p == '-' || *p == '+')) ++p;
  const char* const begin = p;
  // Digits without a point in between make an integer that a double holds, and
  // one correctly rounded division by an exact power of ten follows.
  uint64_t digits = 0;
  while (p < end && IsDigit(*p)) digits = digits * 10 + static_cast<uint64_t>(*p++ - '0');
  ptrdiff_t count = p - begin;
  ptrdiff_t decimals = 0;
  if (p < end && *p == '.') {
    const char* const point = ++p;
    while (p < end && IsDigit(*p)) digits = digits * 10 + static_cast<uint64_t>(*p++ - '0');
    decimals = p - point;
    count += decimals;
  }
  if (p != end || count == 0 || count > kMaxFastDigits || digits > kExactIntegers) {
    return ParseSlowly(begin, end, negative, value);
  }
  return ToFloat(static_cast<double>(digits) / kPowersOf10[decimals], negative, value);
}

}  // namespace traind
