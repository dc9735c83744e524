#include "worker/pretrained/float_values.h"

#include <cstring>

namespace traind {
namespace {

float FromBits(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

template <class Convert>
void Each(absl::string_view data, absl::Span<float> out, const Convert& convert) {
  for (size_t i = 0; i < out.size(); ++i) {
    uint16_t bits;
    std::memcpy(&bits, data.data() + 2 * i, sizeof bits);
    out[i] = convert(bits);
  }
}

}  // namespace

float HalfToFloat(uint16_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000) << 16;
  const uint32_t exponent = bits >> 10 & 0x1f, fraction = bits & 0x3ff;
  if (exponent == 0x1f) return FromBits(sign | 0x7f800000 | fraction << 13);
  if (exponent != 0) return FromBits(sign | (exponent + 112) << 23 | fraction << 13);
  // Zero or a subnormal number: a multiple of 2^-24.
  const float value = static_cast<float>(fraction) * 0x1p-24f;
  return sign != 0 ? -value : value;
}

void ToFloats(DType dtype, absl::string_view data, absl::Span<float> out) {
  if (dtype == DType::kF16) return Each(data, out, HalfToFloat);
  if (dtype == DType::kBF16) {
    return Each(data, out,
                [](uint16_t bits) { return FromBits(static_cast<uint32_t>(bits) << 16); });
  }
  if (!out.empty()) std::memcpy(out.data(), data.data(), out.size() * sizeof(float));
}

}  // namespace traind
