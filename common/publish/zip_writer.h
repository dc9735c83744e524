// Packs finished files into a ZIP archive.
#pragma once

#include <absl/status/statusor.h>

#include <string>
#include <utility>
#include <vector>

#include "common/base/durable_file.h"

namespace traind {

// Writes the archive durably. files: (name in the archive, path); they are read part by part and
// compressed. ResourceExhausted: the disk is full, or the archive would exceed 4 GiB (ZIP's limit;
// its 64-bit form is not written).
absl::StatusOr<FileDigest> WriteZip(const std::string& path,
                                    const std::vector<std::pair<std::string, std::string>>& files);

}  // namespace traind
