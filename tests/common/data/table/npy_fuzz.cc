// Reads any bytes as an NPY file: the result is an array or an error; an encoded array reads back.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "common/data/table/npy.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view bytes(reinterpret_cast<const char*>(data), size);
  (void)traind::ParseNpyInt16(bytes, "x.npy");
  const auto array = traind::ParseNpyFloat(bytes, "x.npy");
  if (!array.ok()) return 0;
  const auto again = traind::ParseNpyFloat(traind::EncodeNpy(array->shape, array->values), "x.npy");
  const bool same =
      again.ok() && again->shape == array->shape && again->values.size() == array->values.size() &&
      (array->values.empty() || std::memcmp(again->values.data(), array->values.data(),
                                            array->values.size() * sizeof(float)) == 0);
  if (!same) {
    std::fprintf(stderr, "what was read does not read back\n");
    std::abort();
  }
  return 0;
}
