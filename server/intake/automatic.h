// Fills in what a spec leaves to the data: the type of the task and the trials of model.automatic.
#pragma once

#include <absl/status/status.h>

#include <string>
#include <vector>

#include "proto/job.pb.h"
#include "server/intake/data_files.h"

namespace traind {

// Where the spec names no task.type: fills it in, and tells why in a warning.
// Errors: those of a look at data.train; InvalidArgument: the data do not tell the type. Messages
// name the field.
absl::Status FillTaskType(DataFiles& files, v1::JobSpec& spec, std::vector<std::string>* warnings);

// Where the spec names neither a model nor images, texts or volumes: fills in data.text if the
// table holds long texts and little else, and tells so in a warning. A file that cannot be read
// changes nothing; the checks that follow name the mistake. REQUIRES: the spec has its task.type.
void FillText(DataFiles& files, v1::JobSpec& spec, std::vector<std::string>* warnings);

// Refuses targets with texts at the beginning of the file where the task needs numbers. Other
// mistakes of the file are none here. train: data.train, seen before.
// Errors: InvalidArgument names the field.
absl::Status CheckTargetNumbers(const DataFiles& files, const DataFile& train,
                                const v1::JobSpec& spec);

// Fills in the trials of a resolved spec with model.automatic; those that it has from another Job
// stay. asked: the spec as the user wrote it. train: data.train, seen before.
void FillTrials(const DataFiles& files, const DataFile& train, const v1::JobSpec& asked,
                v1::JobSpec& resolved);

}  // namespace traind
