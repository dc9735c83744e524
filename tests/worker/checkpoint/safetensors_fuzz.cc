#include <cstddef>
#include <cstdint>

#include "worker/checkpoint/safetensors.h"

// Accepted files must be consistent: every view lies inside the input and has
// the size of its shape.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto file = traind::ParseSafetensors(bytes);
  if (!file.ok()) return 0;
  for (const auto& [name, tensor] : file->tensors) {
    int64_t elements = 1;
    for (const int64_t extent : tensor.shape) elements *= extent;
    if (static_cast<int64_t>(tensor.data.size()) != elements * SizeOf(tensor.dtype)) {
      __builtin_trap();
    }
    const char* end = tensor.data.data() + tensor.data.size();
    if (!tensor.data.empty() && (tensor.data.data() < bytes.data() || end > bytes.end())) {
      __builtin_trap();
    }
    if (tensor.dtype == traind::DType::kF32 && !traind::FloatsOf(*file, name, elements).ok()) {
      __builtin_trap();
    }
  }
  return 0;
}
