// data.train and data.test where rows have more than columns.
#pragma once

#include <absl/status/statusor.h>

#include <memory>

#include "proto/job.pb.h"
#include "server/intake/data_files.h"

namespace traind {

// The training or the test file as the spec's kind of samples takes it: of images a folder
// will do, whose header is that of the table which PREPARE makes of it.
// data: resolved. Errors: those of DataFiles::Look and CheckClassFolders.
absl::StatusOr<std::shared_ptr<const DataFile>> LookAtData(const v1::DataSpec& data, bool training,
                                                           DataFiles& files);

}  // namespace traind
