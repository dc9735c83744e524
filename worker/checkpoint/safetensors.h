// Safetensors files: u64 LE header size, JSON header, tensor bytes. Files written here open in
// any safetensors reader. Files to be read may come from anywhere and are checked as strictly
// as by the reference implementation.
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
int64_t SizeOf(DType dtype);      // bytes per element
const char* NameOf(DType dtype);  // the name in a file, such as "F32"

// Ownership: whoever makes the view owns the data.
struct TensorView {
  DType dtype = DType::kF32;
  std::vector<int64_t> shape;
  absl::string_view data;  // little-endian, row-major
};

struct NamedTensorView {
  std::string name;
  TensorView tensor;
};

// The file's bytes before the tensors' data, which follow in the given order. REQUIRES: as for
// EncodeSafetensors().
std::string SafetensorsHeader(absl::Span<const NamedTensorView> tensors,
                              const std::map<std::string, std::string>& metadata);

// The file's bytes. Tensors are in the given order; the data start at a multiple of 64 bytes.
// REQUIRES: names are distinct; the size of each data is that of its shape.
std::string EncodeSafetensors(absl::Span<const NamedTensorView> tensors,
                              const std::map<std::string, std::string>& metadata);

struct SafetensorsFile {
  std::map<std::string, TensorView> tensors;  // views of the parsed bytes
  std::map<std::string, std::string> metadata;
};

inline constexpr int64_t kMaxSafetensorsHeaderBytes =
    100'000'000;  // the same limit as the reference

// Errors: DataLoss says what is wrong and where: the header is too large or longer than the
// file, an error of ParseSafetensorsHeader, an unknown dtype, a size that is not shape x dtype,
// reversed offsets, or tensors that overlap, leave a gap, or end before or
// after the end of the file.
absl::StatusOr<SafetensorsFile> ParseSafetensors(absl::string_view bytes);

// The values of a float32 tensor. NotFound names the tensor; DataLoss if the dtype or the
// number of values is not the expected one.
absl::StatusOr<std::vector<float>> FloatsOf(const SafetensorsFile& file, const std::string& name,
                                            int64_t expected);

}  // namespace traind
