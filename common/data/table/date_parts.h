// What a date tells a model, as numbers.
#pragma once

#include <absl/types/span.h>

namespace traind {

struct DatePart {
  const char* name;
  bool cycle;  // comes again each year, week or day
};

// Their places are written to files: new ones go to the end.
absl::Span<const DatePart> DateParts();

// seconds: since 1970, UTC; NaN gives NaN. REQUIRES: part < DateParts().size().
float DatePartOf(size_t part, double seconds);

}  // namespace traind
