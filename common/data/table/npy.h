// NPY files, version 1.0, little-endian, C order. Every array that leaves a process has this
// format, so that numpy.load opens it.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>
#include <absl/types/span.h>

#include <cstdint>
#include <string>
#include <vector>

namespace traind {

template <typename T>  // float, int16_t, int32_t
struct Array {
  std::vector<int64_t> shape;
  std::vector<T> values;  // row-major
};

// The header of an array file. Versions 1.0, 2.0 and 3.0.
struct NpyHeader {
  std::string dtype;  // as numpy writes it: <f4, |u1, ...
  bool fortran_order = false;
  std::vector<int64_t> shape;
  size_t data_begin = 0;  // offset in the file
};
// DataLoss: the file is cut, or is not an NPY file.
absl::StatusOr<NpyHeader> ParseNpyHeader(absl::string_view bytes, absl::string_view name);
// Returns the product of the shape's sizes. DataLoss: so many values of `item_bytes` each would not
// exactly fill the rest of the file.
absl::StatusOr<uint64_t> CountNpyValues(const NpyHeader& header, uint64_t data_bytes,
                                        uint64_t item_bytes, absl::string_view name);

// Writes the file durably (common/base/durable_file.h).
absl::Status WriteNpy(const std::string& path, absl::Span<const int64_t> shape,
                      absl::Span<const float> values);
absl::Status WriteNpy(const std::string& path, absl::Span<const int64_t> shape,
                      absl::Span<const int16_t> values);
// NotFound; DataLoss: a cut or foreign file; InvalidArgument: another dtype.
absl::StatusOr<Array<float>> ReadNpyFloat(const std::string& path);
absl::StatusOr<Array<int16_t>> ReadNpyInt16(const std::string& path);

// Parse the same from bytes in memory; `name` is what errors call them.
absl::StatusOr<Array<float>> ParseNpyFloat(absl::string_view bytes, absl::string_view name);
absl::StatusOr<Array<int16_t>> ParseNpyInt16(absl::string_view bytes, absl::string_view name);
// Returns the bytes that WriteNpy writes.
std::string EncodeNpy(absl::Span<const int64_t> shape, absl::Span<const float> values);
std::string EncodeNpy(absl::Span<const int64_t> shape, absl::Span<const int16_t> values);

// Returns the header of a file whose values are written part by part.
std::string NpyHeaderText(absl::string_view dtype, absl::Span<const int64_t> shape);

}  // namespace traind
