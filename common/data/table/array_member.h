// Finds one array in an NPY or NPZ file.
#pragma once

#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>
#include <absl/types/span.h>

#include <string>

namespace traind {

struct ArrayMember {
  std::string name;         // what errors call it: "x.npy", or "a.npz: array 'x'"
  absl::string_view bytes;  // a whole NPY file; lies in the archive's bytes or in the buffer
};

// Returns the one array of an NPY file, or of an NPZ archive the first of `names` that it has.
// buffer: holds the array if it was compressed. NotFound: the archive has none of them; the message
// lists what it has. InvalidArgument: as for ReadZip and ReadMember, or the file is neither NPY nor
// NPZ.
absl::StatusOr<ArrayMember> FindArray(absl::string_view bytes, const std::string& file,
                                      absl::Span<const std::string> names, std::string& buffer);

}  // namespace traind
