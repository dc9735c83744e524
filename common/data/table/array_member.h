// One array out of a file of numpy's.
#pragma once

#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>
#include <absl/types/span.h>

#include <string>

namespace traind {

struct ArrayMember {
  std::string name;         // what errors call it: "x.npy", or "a.npz: array 'x'"
  absl::string_view bytes;  // of a whole NPY file; in the file's own, or in the buffer
};

// An NPY file is its one array; of an NPZ archive it is the member that is named first in `names`
// among those that are there. buffer: takes an array that was deflated.
// NotFound: the archive has none of them; lists what it has. InvalidArgument: as of ReadZip and
// ReadMember; neither NPY nor NPZ.
absl::StatusOr<ArrayMember> FindArray(absl::string_view bytes, const std::string& file,
                                      absl::Span<const std::string> names, std::string& buffer);

}  // namespace traind
