#include "worker/model/handwritten/handwritten_columns.h"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <cstring>

#include "worker/model/kernels/layer_loops.h"

namespace traind {

int64_t HandwrittenSetup::Offset(const std::string& name) const {
  for (size_t i = 0; i < layout->size(); ++i) {
    if ((*layout)[i].name == name) return offsets[i];
  }
  return -1;
}

int64_t HandwrittenSetup::OffsetOfLast(const std::string& name, int64_t rows) const {
  for (size_t i = 0; i < layout->size(); ++i) {
    const ParameterInfo& info = (*layout)[i];
    if (info.name == name) return offsets[i] + (info.shape[0] - rows) * (info.size / info.shape[0]);
  }
  return -1;
}

HandwrittenColumns::HandwrittenColumns(const HandwrittenSetup& setup)
    : rows_(setup.numeric),
      codes_(setup.codes),
      weights_(setup.weights),
      numeric_(setup.shape.numeric),
      width_(setup.shape.numeric) {
  for (size_t i = 0; i < setup.shape.cardinalities.size(); ++i) {
    // Embeddings are declared first (InputColumns).
    const ParameterInfo& parameter = (*setup.layout)[i];
    embeddings_.push_back({setup.offsets[i], parameter.shape[1], parameter.size});
    width_ += parameter.shape[1];
  }
  row_.resize(static_cast<size_t>(width_));
}

void HandwrittenColumns::Gather(int64_t row, float* out) const {
  std::memcpy(out, rows_ + row * numeric_, static_cast<size_t>(numeric_) * sizeof(float));
  out += numeric_;
  const int32_t* codes = codes_ + row * static_cast<int64_t>(embeddings_.size());
  for (const Embedding& embedding : embeddings_) {
    const float* from = weights_ + embedding.offset + *codes++ * embedding.width;
    out = std::copy_n(from, embedding.width, out);
  }
}

void HandwrittenColumns::Gather(int64_t row, Bf16* out) const {
  if (embeddings_.empty()) return ToBf16(rows_ + row * numeric_, out, numeric_);
  Gather(row, row_.data());
  ToBf16(row_.data(), out, width_);
}

void HandwrittenColumns::ClearGradient(float* gradient) const {
  for (const Embedding& embedding : embeddings_) {
    std::fill_n(gradient + embedding.offset, embedding.size, 0.0f);
  }
}

template <class T>
void HandwrittenColumns::AddGradient(int64_t row, const T* d, float* gradient) const {
  const int32_t* codes = codes_ + row * static_cast<int64_t>(embeddings_.size());
  for (const Embedding& embedding : embeddings_) {
    float* to = gradient + embedding.offset + *codes++ * embedding.width;
    for (int64_t k = 0; k < embedding.width; ++k) to[k] += Load(*d++);
  }
}
template void HandwrittenColumns::AddGradient(int64_t, const float*, float*) const;
template void HandwrittenColumns::AddGradient(int64_t, const Bf16*, float*) const;

}  // namespace traind
