// Decimal numbers as data files write them.
#pragma once

#include <absl/strings/string_view.h>

#include <cstddef>
#include <string>

namespace traind {

enum class NumberKind {
  kNumber,     // finite as float32
  kNotFinite,  // inf, Infinity, or beyond the range of float32, such as 1e9999
  kText,       // anything else
};

// Reads [+-]digits[.digits][e[+-]digits], which must be all of `text`. value is the float32 nearest
// to the nearest double, as with strtod. Also reads amounts as people write them: 1,234.5 with
// commas between thousands, or with a mark as of ThousandsMark, the same one throughout; one of $
// and the signs of euro, pound and yen before or behind it, and a percent sign behind it, which
// changes nothing (43% is 43). Hexadecimal and other blanks are not accepted.
NumberKind ParseNumber(absl::string_view text, float& value);

// Returns the bytes of the blank (plain, no-break, narrow no-break or thin) or of the apostrophe
// (' or U+2019) that stands at `at`, as between thousands: 1'234, 1 234. 0: there is none.
size_t ThousandsMark(absl::string_view text, size_t at);

// Returns the text without the signs of an amount as above, and without blanks around the rest.
absl::string_view WithoutUnit(absl::string_view text);

// Returns the number of an amount as above in the form that strtod reads: "-1234.5" for
// "-$1,234.5". Returns "" for any other text, plain numbers included.
std::string PlainAmount(absl::string_view text);

// Sets exact to the text's number in double. REQUIRES: ParseNumber reads the text.
bool ParseExactly(absl::string_view text, double& exact);

// Returns whether the float32 is so large, and so far from the text's number, that differences of
// other numbers near it are lost; exact is then the text's number. REQUIRES: ParseNumber has read
// `rounded` from the text.
bool LosesDigits(absl::string_view text, float rounded, double& exact);

// Sets out[i] to the number in fields[i * stride], or to NaN where ParseNumber would not return
// kNumber.
void ParseNumbers(const absl::string_view* fields, size_t stride, size_t count, float* out);

// Does the same as ParseNumbers, minus offset, which is subtracted before the result is rounded.
void ParseNumbersLess(double offset, const absl::string_view* fields, size_t stride, size_t count,
                      float* out);

}  // namespace traind
