#include "common/data/table/number.h"

#include <absl/strings/ascii.h>
#include <absl/strings/match.h>
#include <absl/strings/numbers.h>
#include <absl/strings/strip.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <string>

namespace traind {
namespace {

constexpr double kPowersOf10[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                  1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                  1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
constexpr uint64_t kExactIntegers = uint64_t{1} << 53;  // all smaller integers are exact as doubles
constexpr ptrdiff_t kMaxFastDigits = 18;                // so many digits fit into 64 bits

inline bool IsDigit(char c) { return static_cast<unsigned char>(c - '0') < 10; }

// Whether [p, end) is digits[.digits][e[+-]digits] with a digit before or after the point.
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

constexpr absl::string_view kApostrophes[] = {"'", "\xe2\x80\x99"};
constexpr absl::string_view kBlanks[] = {" ", "\xc2\xa0", "\xe2\x80\xaf", "\xe2\x80\x89"};

absl::string_view WithoutBlanks(absl::string_view text) {
  text = absl::StripAsciiWhitespace(text);
  for (const absl::string_view blank : kBlanks) {
    while (absl::ConsumePrefix(&text, blank) || absl::ConsumeSuffix(&text, blank)) {
    }
  }
  return text;
}

// Whether the text is what a person may write around digits, at a glance.
bool MayBeAmount(absl::string_view text) {
  constexpr size_t kLongest = 40;
  bool digit = false, sign = false;
  for (const char c : text.substr(0, kLongest)) {
    digit |= IsDigit(c);
    sign |= c == ',' || c == ' ' || c == '\'' || c == '$' || c == '%' ||
            (static_cast<unsigned char>(c) & 0x80) != 0;
  }
  return digit && sign && text.size() <= kLongest;
}

// Removes what stands between thousands. Returns false if there is anything else but digits before
// the point, or the groups are none.
bool WithoutThousands(absl::string_view text, std::string& number) {
  constexpr size_t kGroup = 3;  // digits
  const size_t whole = std::min(text.find('.'), text.size());
  absl::string_view mark;
  size_t group = 0;  // digits since the last mark
  for (size_t i = 0; i < whole;) {
    if (IsDigit(text[i])) {
      number.push_back(text[i++]);
      ++group;
      continue;
    }
    const absl::string_view next =
        text.substr(i, text[i] == ',' ? 1 : ThousandsMark(text.substr(0, whole), i));
    const bool first = mark.empty();
    if (next.empty() || !(first ? group > 0 && group <= kGroup : next == mark && group == kGroup)) {
      return false;
    }
    // 012 345 is rather a code.
    if (first && next != "," && text[0] == '0') return false;
    mark = next;
    group = 0;
    i += next.size();
  }
  if (!mark.empty() && group != kGroup) return false;
  number.append(text.data() + whole, text.size() - whole);
  return true;
}

// Parses what the fast path does not: exponents, many digits, words, amounts.
// p: behind the sign of the text.
NumberKind ParseSlowly(absl::string_view text, const char* p, bool negative, float& value) {
  const char* const end = text.data() + text.size();
  if (!IsDecimal(p, end)) {
    const absl::string_view word(p, static_cast<size_t>(end - p));
    if (absl::EqualsIgnoreCase(word, "inf") || absl::EqualsIgnoreCase(word, "infinity")) {
      return NumberKind::kNotFinite;
    }
    const std::string plain = PlainAmount(text);
    return plain.empty() ? NumberKind::kText : ParseNumber(plain, value);
  }
  double number = 0;
  if (std::from_chars(p, end, number).ec == std::errc::result_out_of_range) {
    // The number is too large or too small; from_chars does not say which.
    number = std::strtod(std::string(p, end).c_str(), nullptr);
  }
  return ToFloat(number, negative, value);
}

// Eight characters are held in one word, the first in the lowest byte.
constexpr uint64_t kOnes = 0x0101010101010101;
constexpr uint64_t kHighBits = 0x80 * kOnes;
constexpr uint64_t kZeroDigits = '0' * kOnes;
constexpr uint64_t kPoints = '.' * kOnes;

inline uint64_t Load8(const char* p) {
  uint64_t word;
  std::memcpy(&word, p, sizeof word);
  return word;
}

// Loads the n characters from p on and fills up with zeros. REQUIRES: 1 <= n <= 8.
inline uint64_t LoadUpTo8(const char* p, size_t n) {
  if (n == 8) return Load8(p);
  if (n >= 4) {
    // The two loads may overlap.
    uint32_t first, last;
    std::memcpy(&first, p, sizeof first);
    std::memcpy(&last, p + n - 4, sizeof last);
    return first | static_cast<uint64_t>(last) << (8 * (n - 4));
  }
  const auto byte = [&](size_t i) {
    return static_cast<uint64_t>(static_cast<unsigned char>(p[i])) << (8 * i);
  };
  return byte(0) | byte(n / 2) | byte(n - 1);
}

// Returns the last n of eight characters, padded on the left with '0'. REQUIRES: 1 <= n <= 8.
inline uint64_t PadLeft(uint64_t word, size_t n) {
  const size_t shift = 8 * (8 - n);
  return shift == 0 ? word : word << shift | (kZeroDigits & ((uint64_t{1} << shift) - 1));
}

// Returns a word with bit 8k + 7 set for the first character k that is a point, and maybe higher
// bits; 0 if none is.
inline uint64_t FindPoint(uint64_t word) {
  const uint64_t x = word ^ kPoints;
  return (x - kOnes) & ~x & kHighBits;
}

// Removes character k; those before it move up behind `carry`.
inline uint64_t RemoveAt(uint64_t word, size_t k, uint64_t carry) {
  const uint64_t before = (uint64_t{1} << (8 * k)) - 1;
  const uint64_t after = k == 7 ? 0 : ~uint64_t{0} << (8 * (k + 1));
  return (word & before) << 8 | (word & after) | carry;
}

inline bool AllDigits(uint64_t word) {
  return ((word & (0xf0 * kOnes)) | (((word + 0x06 * kOnes) & (0xf0 * kOnes)) >> 4)) ==
         0x33 * kOnes;
}

// Returns the number that eight digits make, combining pairs first (Lemire, "Quickly parsing eight
// digits", 2018).
inline uint64_t EightDigits(uint64_t word) {
  word -= kZeroDigits;
  word = word * 10 + (word >> 8);
  constexpr uint64_t kEveryFourth = 0x000000ff000000ff;
  return ((word & kEveryFourth) * (100 + (uint64_t{1000000} << 32)) +
          ((word >> 16 & kEveryFourth) * (1 + (uint64_t{10000} << 32)))) >>
         32;
}

// Parses plain decimals of up to 16 characters after the sign, word by word, to the same value as
// ParseNumber. Returns false if the text is, or may be, something else.
inline bool ParsePlain(absl::string_view text, float& value) {
  const char* p = text.data();
  size_t n = text.size();
  if (n == 0) return false;
  const bool negative = *p == '-';
  const bool sign = negative || *p == '+';
  p += sign;
  n -= sign;
  if (n == 0 || n > 16) return false;
  uint64_t digits = 0;
  size_t decimals = 0;
  if (n <= 8) {
    uint64_t word = PadLeft(LoadUpTo8(p, n), n);
    if (const uint64_t point = FindPoint(word); point != 0) {
      const auto k = static_cast<size_t>(__builtin_ctzll(point)) / 8;
      if (n == 1) return false;
      word = RemoveAt(word, k, '0');
      decimals = 7 - k;
    }
    if (!AllDigits(word)) return false;
    digits = EightDigits(word);
  } else {
    uint64_t high = PadLeft(Load8(p), n - 8);
    uint64_t low = Load8(p + n - 8);
    if (const uint64_t point = FindPoint(low); point != 0) {
      const auto k = static_cast<size_t>(__builtin_ctzll(point)) / 8;
      low = RemoveAt(low, k, high >> 56);
      high = high << 8 | '0';
      decimals = 7 - k;
    } else if (const uint64_t in_high = FindPoint(high); in_high != 0) {
      const auto k = static_cast<size_t>(__builtin_ctzll(in_high)) / 8;
      high = RemoveAt(high, k, '0');
      decimals = 15 - k;
    }
    if (!AllDigits(high) || !AllDigits(low)) return false;
    digits = EightDigits(high) * 100'000'000 + EightDigits(low);
    if (digits > kExactIntegers) return false;
  }
  const double number = static_cast<double>(digits) / kPowersOf10[decimals];
  // This avoids a branch, because signs are unpredictable.
  const auto magnitude = static_cast<float>(number);
  uint32_t bits;
  std::memcpy(&bits, &magnitude, sizeof bits);
  bits |= static_cast<uint32_t>(negative) << 31;
  std::memcpy(&value, &bits, sizeof value);
  return true;
}

}  // namespace

void ParseNumbers(const absl::string_view* fields, size_t stride, size_t count, float* out) {
  for (size_t i = 0; i < count; ++i, fields += stride) {
    if (!ParsePlain(*fields, out[i]) && ParseNumber(*fields, out[i]) != NumberKind::kNumber) {
      out[i] = std::numeric_limits<float>::quiet_NaN();
    }
  }
}

NumberKind ParseNumber(absl::string_view text, float& value) {
  const char* p = text.data();
  const char* const end = p + text.size();
  const bool negative = p < end && *p == '-';
  if (p < end && (*p == '-' || *p == '+')) ++p;
  const char* const begin = p;
  // The digits without the point make an integer that a double holds exactly; one correctly rounded
  // division by an exact power of ten follows.
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
    return ParseSlowly(text, begin, negative, value);
  }
  return ToFloat(static_cast<double>(digits) / kPowersOf10[decimals], negative, value);
}

size_t ThousandsMark(absl::string_view text, size_t at) {
  const absl::string_view rest = text.substr(at);
  for (const absl::string_view mark : kApostrophes) {
    if (absl::StartsWith(rest, mark)) return mark.size();
  }
  for (const absl::string_view mark : kBlanks) {
    if (absl::StartsWith(rest, mark)) return mark.size();
  }
  return 0;
}

absl::string_view WithoutUnit(absl::string_view text) {
  absl::ConsumeSuffix(&text, "%");
  for (const absl::string_view currency :
       {"$", "\xe2\x82\xac", "\xc2\xa3", "\xc2\xa5"}) {  // dollar, euro, pound, yen
    if (absl::ConsumePrefix(&text, currency) || absl::ConsumeSuffix(&text, currency)) break;
  }
  return WithoutBlanks(text);
}

std::string PlainAmount(absl::string_view text) {
  if (!MayBeAmount(text) || text.size() != absl::StripAsciiWhitespace(text).size()) return "";
  const size_t whole = text.size();
  std::string number;
  size_t signs = 0;  // before the unit or behind it
  const auto take_sign = [&] {
    if (signs > 0 || text.empty() || (text[0] != '+' && text[0] != '-')) return;
    if (text[0] == '-') number = "-";
    text.remove_prefix(1);
    ++signs;
  };
  take_sign();
  text = WithoutUnit(text);
  take_sign();
  std::string amount;
  if (!WithoutThousands(text, amount)) return "";
  const bool plain = signs + amount.size() == whole;
  const char* const begin = amount.data();
  return plain || !IsDecimal(begin, begin + amount.size()) ? "" : number + amount;
}

bool ParseExactly(absl::string_view text, double& exact) {
  return absl::SimpleAtod(text, &exact) || absl::SimpleAtod(PlainAmount(text), &exact);
}

bool LosesDigits(absl::string_view text, float rounded, double& exact) {
  constexpr float kLarge = 1 << 16;  // float32 has less than 8 binary places from here on
  if (!(std::fabs(rounded) >= kLarge) || !ParseExactly(text, exact)) return false;
  return exact != static_cast<double>(rounded);
}

void ParseNumbersLess(double offset, const absl::string_view* fields, size_t stride, size_t count,
                      float* out) {
  for (size_t i = 0; i < count; ++i) {
    float rounded;
    double exact;
    out[i] = std::nanf("");
    if (ParseNumber(fields[i * stride], rounded) == NumberKind::kNumber &&
        ParseExactly(fields[i * stride], exact)) {
      out[i] = static_cast<float>(exact - offset);
    }
  }
}

}  // namespace traind
