#pragma once

#include <cstdint>
#include <vector>

#include "worker/model/handwritten/handwritten_backward.h"
#include "worker/model/kernels/bf16.h"

namespace traind {

// The input columns of a time step in the order of InputColumns: numeric columns, then
// embeddings.
// Threads: confined to one.
class HandwrittenColumns {
 public:
  explicit HandwrittenColumns(const HandwrittenSetup& setup);

  int64_t width() const { return width_; }
  int64_t numeric() const { return numeric_; }
  bool has_embeddings() const { return !embeddings_.empty(); }

  // out: [width()].
  void Gather(int64_t row, float* out) const;
  void Gather(int64_t row, Bf16* out) const;

  void ClearGradient(float* gradient) const;
  // d: the gradient by a row's embedding columns, [width() - numeric()].
  template <class T>
  void AddGradient(int64_t row, const T* d, float* gradient) const;

 private:
  struct Embedding {
    int64_t offset = 0, width = 0, size = 0;
  };

  const float* const rows_;
  const int32_t* const codes_;
  const float* const weights_;
  const int64_t numeric_;
  int64_t width_ = 0;
  std::vector<Embedding> embeddings_;
  mutable std::vector<float> row_;  // scratch memory of a bf16 gather
};

}  // namespace traind
