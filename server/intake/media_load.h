// Estimates how many files a Job's samples lie in.
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
  bool images = false;  // the names of all files are those of images
};

// Counts the files of a folder of images (columns are then ignored), or those that a table names in
// these columns. It counts at most 50,000 names, extrapolates sizes from some hundred files and,
// for a table, rows from the length of the first ones. Unreadable files count as nothing.
MediaLoad CountMedia(const DataFile& file, const std::vector<std::string>& columns);

// Returns the time that PREPARE needs to read them all on two cores.
absl::Duration MediaTime(const MediaLoad& load);

}  // namespace traind
