// Checks a spec's pretrained weights at intake.
#pragma once

#include <string>
#include <vector>

#include "proto/job.pb.h"
#include "server/intake/data_files.h"

namespace traind {

// Resolves the paths, fills in the digest, and replaces the path of a map file in the spec by its
// content. Mistakes are reported with their fields.
void TakePretrained(v1::PretrainedSpec& spec, const DataFiles& files,
                    std::vector<std::string>* mistakes);

}  // namespace traind
