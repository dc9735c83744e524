// Checks a spec's pretrained weights at intake.
#pragma once

#include "proto/job.pb.h"
#include "server/intake/data_files.h"
#include "server/intake/mistakes.h"

namespace traind {

// Resolves the paths, fills in the digest, and replaces the path of a map file in the spec by its
// content. Of a folder it fills in the file, the config and what follows from them, unless `asked`,
// the spec as it was submitted, says otherwise. Mistakes are reported with their fields.
// REQUIRES: spec has model.pretrained.
void TakePretrained(const v1::JobSpec& asked, const DataFiles& files, v1::JobSpec& spec,
                    Mistakes& mistakes);

}  // namespace traind
