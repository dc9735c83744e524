// How many files a Job's samples lie in, as far as a quick look tells.
#pragma once

#include <absl/time/time.h>

#include <cstdint>
#include <string>
#include <vector>

#include "server/intake/data_files.h"

namespace traind {

struct MediaLoad {
  int64_t files = 0;
  int64_t bytes = 0;
};

// The files of a folder of images (column names are of no use then), or those that a table names
// in these columns. Counts at most 50,000 names, and knows sizes by those of some hundred files;
// of a table, rows by the length of its first ones. What cannot be looked at counts as nothing.
MediaLoad CountMedia(const DataFile& file, const std::vector<std::string>& columns);

// What PREPARE needs to read them all, on two cores.
absl::Duration MediaTime(const MediaLoad& load);

}  // namespace traind
