// The number format of a step's computations. Weights, moments and losses are always float32.
#pragma once

#include <absl/strings/string_view.h>

#include <optional>

namespace traind {

enum class Precision {
  kFp32,
  kTf32,  // GPUs: matrix products with 10-bit mantissas
  kBf16,  // autocast
  kFp16,  // autocast with loss scaling; GPUs
};

inline absl::string_view PrecisionName(Precision precision) {
  switch (precision) {
    case Precision::kFp32:
      return "fp32";
    case Precision::kTf32:
      return "tf32";
    case Precision::kBf16:
      return "bf16";
    case Precision::kFp16:
      return "fp16";
  }
  return "";
}

inline std::optional<Precision> PrecisionByName(absl::string_view name) {
  for (const Precision precision :
       {Precision::kFp32, Precision::kTf32, Precision::kBf16, Precision::kFp16}) {
    if (name == PrecisionName(precision)) return precision;
  }
  return std::nullopt;
}

// Whether this machine's processor multiplies bf16. Without instructions for it bf16 is emulated,
// many times slower.
inline bool CpuMultipliesBf16() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx512bf16") != 0;
#else
  return false;
#endif
}

// Whether arithmetic is in half precision, whose range a loss may exceed.
inline bool UsesAmp(Precision precision) {
  return precision == Precision::kBf16 || precision == Precision::kFp16;
}

}  // namespace traind
