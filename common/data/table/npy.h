// NPY files, version 1.0, little-endian, C order: the form of every array that
// leaves a process, so that numpy.load opens it.
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

// What stands before an array's values. Versions 1.0, 2.0 and 3.0.
struct NpyHeader {
  std::string dtype;  // as numpy writes it: <f4, |u1, ...
  bool fortran_order = false;
  std::vector<int64_t> shape;
  size_t data_begin = 0;  // in the file
};
// DataLoss: cut, or no NPY file.
absl::StatusOr<NpyHeader> ParseNpyHeader(absl::string_view bytes, absl::string_view name);
// The product of the shape's sizes. DataLoss: values of `item_bytes` each would
// not fill just the file's rest.
absl::StatusOr<uint64_t> CountNpyValues(const NpyHeader& header, uint64_t data_bytes,
                                        uint64_t item_bytes, absl::string_view name);

// Writes durably (DurableFile: temporary name, fsync, rename, fsync of the folder).
absl::Status WriteNpy(const std::string& path, absl::Span<const int64_t> shape,
                      absl::Span<const float> values);
absl::Status WriteNpy(const std::string& path, absl::Span<const int64_t> shape,
                      absl::Span<const int16_t> values);
// NotFound; DataLoss for a cut or foreign file; InvalidArgument for another dtype.
absl::StatusOr<Array<float>> ReadNpyFloat(const std::string& path);
absl::StatusOr<Array<int16_t>> ReadNpyInt16(const std::string& path);

// The same of bytes at hand; `name` is what errors call them.
absl::StatusOr<Array<float>> ParseNpyFloat(absl::string_view bytes, absl::string_view name);
absl::StatusOr<Array<int16_t>> ParseNpyInt16(absl::string_view bytes, absl::string_view name);
// The bytes that WriteNpy writes.
std::string EncodeNpy(absl::Span<const int64_t> shape, absl::Span<const float> values);
std::string EncodeNpy(absl::Span<const int64_t> shape, absl::Span<const int16_t> values);

// What stands before the values of a file that is written part by part.
std::string NpyHeaderText(absl::string_view dtype, absl::Span<const int64_t> shape);

}  // namespace traind
