// A statistical model of one series, which goes on with the series row by row.
#pragma once

#include <cstdint>

namespace traind {

// Threads: confined to one.
class SeriesModel {
 public:
  virtual ~SeriesModel() = default;
  // Takes the value of the next row; NaN: it is missing. What was fitted stays.
  virtual void Append(double value) = 0;
  // Returns the value `steps` (>= 1) rows after the last one that was appended.
  virtual double Forecast(int64_t steps) const = 0;
};

}  // namespace traind
