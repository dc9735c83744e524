// Sends the files that a spec names to a traind that does not see them.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <string>

#include "client/environment.h"
#include "client/training_client.h"
#include "proto/job.pb.h"

namespace traind {

// Sends a file, from where an earlier call stopped, and returns its path at traind. Tells the
// progress on stderr. `field` is its place in the spec, for errors: InvalidArgument ("data.train:
// ...") if the file cannot be read or is a folder; those of Upload.
absl::StatusOr<std::string> UploadFile(const std::string& field, const std::string& path,
                                       TrainingClient& client, Environment& environment);

// Sends data.train, data.test or a later file; of images and volumes the folder, or the table and
// the files that it names. data: of the spec. Errors: as UploadFile; InvalidArgument: the table is
// none, or lacks the column of files.
absl::StatusOr<std::string> UploadData(const std::string& field, const std::string& path,
                                       const v1::DataSpec& data, TrainingClient& client,
                                       Environment& environment);

// Sends every file that the spec names, and has the spec name the copies. Errors: as UploadData;
// InvalidArgument: run.results is set, where traind keeps what the program leaves.
absl::Status UploadFilesOf(v1::JobSpec& spec, TrainingClient& client, Environment& environment);

// Says on stderr that --upload would help, if traind cannot read a file that is here.
void SuggestUpload(v1::JobSpec spec, const absl::Status& refusal, Environment& environment);

}  // namespace traind
