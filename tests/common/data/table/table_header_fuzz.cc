// Reads any bytes as a table file: the result is a header whose places all lie in the file, or an
// error.
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "common/data/table/table_header.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto header = traind::ParseTableHeader(bytes, size, "x.table");
  if (!header.ok()) return 0;
  const auto check = [&](const traind::ArrayPlace& place) {
    if (place.offset <= size && place.bytes <= size - place.offset && place.offset % 64 == 0)
      return;
    std::fprintf(stderr, "a place lies outside of the file\n");
    std::abort();
  };
  for (const auto& places : header->features) {
    for (const auto& place : places) check(place);
  }
  for (const auto& place : header->target) check(place);
  check(header->id_ends);
  check(header->id_text);
  return 0;
}
