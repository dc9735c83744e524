// Volumes and their masks of rows, for PREPARE.
#pragma once

#include <absl/status/statusor.h>

#include <memory>

#include "worker/prepare/row_media.h"

namespace traind {

// Of manifests (data.volume): tables with columns of files, relative to the table's folder, that
// lead to nothing outside of it. The table that is read has a column kForegroundColumn
// besides, which Add fills. Add decodes the volumes into the cache
// (common/data/volume/volume_set.h) in the order of the rows. It takes training rows out whose
// files cannot be read, and names them in the schema's warnings; InvalidArgument where these are
// too many, or one is of the test file. Errors: those of MappedFile; InvalidArgument where a table
// lacks a column, or a path leads elsewhere.
absl::StatusOr<std::unique_ptr<RowMedia>> OpenVolumeMedia(const PrepareSpec& spec);

}  // namespace traind
