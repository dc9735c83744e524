// Reads any bytes as an NPY or NPZ file: the result is rows and columns, or an error.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "common/data/table/array_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view bytes(reinterpret_cast<const char*>(data), size);
  if (!traind::IsArrayFile(bytes)) return 0;
  const auto file = traind::ArrayFile::Open(bytes, "x.npz");
  if (!file.ok()) return 0;
  traind::CsvRows rows;
  const int64_t some = std::min<int64_t>((*file)->rows(), 100);
  (*file)->Append(0, some, rows);
  if (rows.rows() != static_cast<size_t>((*file)->columns().empty() ? 0 : some)) {
    std::fprintf(stderr, "rows are missing\n");
    std::abort();
  }
  return 0;
}
