// Decimal numbers as they stand in data files.
#pragma once

#include <absl/strings/string_view.h>

namespace traind {

enum class NumberKind {
  kNumber,     // finite as float32
  kNotFinite,  // inf, Infinity, or beyond the range of float32, such as 1e9999
  kText,       // anything else
};

// Reads [+-]digits[.digits][e[+-]digits], all of `text`; value is the float32
// nearest to the nearest double, as of strtod. No hexadecimal, no thousands
// separators, no blanks.
NumberKind ParseNumber(absl::string_view text, float& value);

// out[i]: fields[i * stride] as a number, or NaN where ParseNumber would not say
// kNumber.
void ParseNumbers(const absl::string_view* fields, size_t stride, size_t count, float* out);

}  // namespace traind
