// Examines data.train and data.test where rows are images or volumes.
#pragma once

#include <absl/status/statusor.h>

#include <memory>
#include <string>

#include "proto/job.pb.h"
#include "server/intake/data_files.h"

namespace traind {

// Examines the training or the test file according to the kind of samples. For images it accepts a
// folder, whose header is that of the table which PREPARE makes of it, and arrays. data: resolved.
// Errors: those of DataFiles::Look, CheckClassFolders and ImageArrayShapeOf.
absl::StatusOr<std::shared_ptr<const DataFile>> LookAtData(const v1::DataSpec& data, bool training,
                                                           DataFiles& files);

// Does the same for a file to be predicted with models that were trained on data like `learnt`.
absl::StatusOr<std::shared_ptr<const DataFile>> LookAtLaterData(const v1::DataSpec& learnt,
                                                                const std::string& path,
                                                                DataFiles& files);

}  // namespace traind
