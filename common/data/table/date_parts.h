// Numeric features made from dates.
#pragma once

#include <absl/types/span.h>

namespace traind {

struct DatePart {
  const char* name;
  bool cycle;  // repeats each year, week or day
};

// Indices into this list are written to files, so new parts go to the end.
absl::Span<const DatePart> DateParts();

// seconds: since 1970, UTC; NaN gives NaN. REQUIRES: part < DateParts().size().
float DatePartOf(size_t part, double seconds);

}  // namespace traind
