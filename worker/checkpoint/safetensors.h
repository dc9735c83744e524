// Safetensors files: u64 LE header size, JSON header, tensor bytes. What is
// written opens in any safetensors reader; what is read is checked as strictly
// as the reference implementation does, and may come from anywhere.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>
#include <absl/types/span.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace traind {

enum class DType {
  kF32,
  kF16,
  kBF16,
  kF64,
  kI64,
  kI32,
  kI16,
  kI8,
  kU64,
  kU32,
  kU16,
  kU8,
  kBool,
  kC64,
  kF8E4M3,
  kF8E5M2
};
int64_t SizeOf(DType dtype);      // bytes of an element
const char* NameOf(DType dtype);  // as in the file: "F32"

// Ownership: data belongs to whoever made the view.
struct TensorView {
  DType dtype = DType::kF32;
  std::vector<int64_t> shape;
  absl::string_view data;  // little-endian, row-major
};

struct NamedTensorView {
  std::string name;
  TensorView tensor;
};

// The file's bytes up to the tensors' data, which follow one after the other in the
// given order. REQUIRES: as EncodeSafetensors().
std::string SafetensorsHeader(absl::Span<const NamedTensorView> tensors,
                              const std::map<std::string, std::string>& metadata);

// The file's bytes. Tensors stand in the given order, the data from a multiple
// of 64 bytes on. REQUIRES: distinct names; each data has its shape's size.
std::string EncodeSafetensors(absl::Span<const NamedTensorView> tensors,
                              const std::map<std::string, std::string>& metadata);

struct SafetensorsFile {
  std::map<std::string, TensorView> tensors;  // views into the bytes parsed
  std::map<std::string, std::string> metadata;
};

inline constexpr int64_t kMaxSafetensorsHeaderBytes = 100'000'000;  // as the reference

// Errors: DataLoss says what is wrong and where: header too large or longer than the file,
// those of ParseSafetensorsHeader, unknown dtype, size unequal shape x dtype, offsets that run
// backwards, tensors that overlap, leave holes or end before or after the file does.
absl::StatusOr<SafetensorsFile> ParseSafetensors(absl::string_view bytes);

// The values of a float32 tensor. NotFound names it; DataLoss where dtype or
// number of values differ from what is expected.
absl::StatusOr<std::vector<float>> FloatsOf(const SafetensorsFile& file, const std::string& name,
                                            int64_t expected);

}  // namespace traind
