// Checks a folder with a text network of Hugging Face's transformers at intake.
#pragma once

#include <absl/status/statusor.h>

#include <string>

#include "proto/job.pb.h"
#include "server/intake/data_files.h"

namespace traind {

// Fills in what model.text and data.text take from model.pretrained.folder: sizes, the tokenizer's
// file, and how many tokens of a text the network sees. asked: the spec as it was submitted.
// REQUIRES: model.pretrained has folder and config.
// Errors: InvalidArgument names the file and what is wrong with it.
absl::Status TakeTextFolder(const v1::JobSpec& asked, const DataFiles& files, v1::JobSpec& spec);

// Returns the content of a small file of a folder; at most 1 MiB. Errors: those of
// DataFiles::Resolve; InvalidArgument: it is larger.
absl::StatusOr<std::string> ReadFolderFile(const DataFiles& files, const std::string& path);

}  // namespace traind
