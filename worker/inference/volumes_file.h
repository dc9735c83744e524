// The volumes of a data file, decoded once into a scratch file beside its rows.
#pragma once

#include <absl/status/statusor.h>

#include <functional>
#include <memory>
#include <string>

#include "common/data/volume/volume_input.h"
#include "common/data/volume/volume_set.h"
#include "worker/inference/rows_file.h"

namespace traind {

inline std::string VolumesPath(const std::string& rows_path) { return rows_path + ".volumes"; }

struct VolumesFile {
  std::shared_ptr<const VolumeSet> set;  // its test volumes are the rows
  std::string sha256;
};

// Decodes the volume of each row, in their order, into VolumesPath(rows_path), as PREPARE does.
// table: the path of the data file, whose folder the rows' texts are relative to. keep_going: asked
// after each volume.
// Errors: InvalidArgument or NotFound name the file that is unreadable, lies elsewhere, or has
// another number of channels; Cancelled if keep_going returned false; those of VolumeSetWriter.
absl::StatusOr<VolumesFile> WriteVolumesFile(const VolumeInput& input, const std::string& table,
                                             const RowsFile& rows, const std::string& rows_path,
                                             const std::function<bool()>& keep_going);

}  // namespace traind
