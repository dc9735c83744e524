// The state of a fitted forecast by lags, for the file of its model.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace traind {

// worker/trees/lag_encoder.h has the meaning of each.
struct LagState {
  bool raw = false;
  bool forward = true;  // rows are forecast 1 to `horizon` rows ahead; else `horizon` rows ahead
  int64_t lags = 0;
  std::vector<int64_t> periods;          // of the seasons that the series may have
  int64_t base = -1;                     // index into the past values; -1: the series' mean
  std::vector<float> mean, scale;        // [series]
  std::vector<std::string> known_ahead;  // columns of the file, besides that of the time
};

}  // namespace traind
