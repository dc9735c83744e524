// The volumes and masks of rows during PREPARE.
#pragma once

#include <absl/status/statusor.h>

#include <memory>

#include "worker/prepare/row_media.h"

namespace traind {

// Opens manifests (data.volume): tables with columns of file names, relative to the table's
// folder, which must not lead outside of it. The table that is read has an additional column
// kForegroundColumn, which Add() fills. Add() decodes the volumes into the cache
// (common/data/volume/volume_set.h) in the order of the rows. It removes training rows with
// unreadable files and names them in the schema's warnings; InvalidArgument if there are too
// many, or if a file of a test row is unreadable.
// Errors: those of MappedFile; InvalidArgument if a table lacks a column, or a path leads
// outside.
absl::StatusOr<std::unique_ptr<RowMedia>> OpenVolumeMedia(const PrepareSpec& spec);

}  // namespace traind
