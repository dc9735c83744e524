// Weights that a spec starts from, at acceptance.
#pragma once

#include <string>
#include <vector>

#include "proto/job.pb.h"
#include "server/intake/data_files.h"

namespace traind {

// Resolves the paths, fills in the digest, and puts the map that stands in a file into the
// spec itself, which then names no file of it. Mistakes come with their fields.
void TakePretrained(v1::PretrainedSpec& spec, const DataFiles& files,
                    std::vector<std::string>* mistakes);

}  // namespace traind
