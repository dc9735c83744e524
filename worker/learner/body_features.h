// What a fixed body makes of a learner's rows, kept so that each row passes the body once.
#pragma once

#include <ATen/core/Tensor.h>
#include <absl/types/span.h>

#include <cstdint>
#include <vector>

namespace traind {

// Threads: confined to one. Errors: torch's exceptions.
class BodyFeatures {
 public:
  // From now on there is room for `rows` vectors of `width` numbers on the device, and none is
  // known; Kept() tells whether they are kept at all, which they are not beyond kMostBytes.
  void Reset(int64_t rows, int64_t width, c10::Device device);
  void Clear();

  bool Kept() const { return values_.defined(); }
  // The rows among these that are not known, each once.
  std::vector<int32_t> Missing(absl::Span<const int32_t> rows) const;
  // values: [rows, width].
  void Put(absl::Span<const int32_t> rows, const at::Tensor& values);
  // [rows, width]. REQUIRES: all are known.
  at::Tensor Get(absl::Span<const int32_t> rows) const;

 private:
  static constexpr int64_t kMostBytes = int64_t{2} << 30;
  at::Tensor values_;  // [all rows, width] float32
  std::vector<bool> known_;
};

}  // namespace traind
