// data.train and data.test where rows have more than columns.
#pragma once

#include <absl/status/statusor.h>

#include <memory>
#include <string>

#include "proto/job.pb.h"
#include "server/intake/data_files.h"

namespace traind {

// The training or the test file as the spec's kind of samples takes it: of images a folder
// will do, whose header is that of the table which PREPARE makes of it, and arrays.
// data: resolved. Errors: those of DataFiles::Look, CheckClassFolders and ImageArrayShapeOf.
absl::StatusOr<std::shared_ptr<const DataFile>> LookAtData(const v1::DataSpec& data, bool training,
                                                           DataFiles& files);

// The same of a file that is predicted with models which learnt of data like `learnt`.
absl::StatusOr<std::shared_ptr<const DataFile>> LookAtLaterData(const v1::DataSpec& learnt,
                                                                const std::string& path,
                                                                DataFiles& files);

}  // namespace traind
