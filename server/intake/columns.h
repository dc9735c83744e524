// The columns that a spec names, and those that its files have.
#pragma once

#include <string>
#include <vector>

#include "proto/job.pb.h"
#include "server/intake/data_files.h"
#include "server/intake/mistakes.h"

namespace traind {

// Checks columns against the spec and each other. test: nullptr where there is none.
void CheckColumns(const v1::JobSpec& spec, const DataFile& train, const DataFile* test,
                  Mistakes& mistakes, std::vector<std::string>* warnings);

}  // namespace traind
