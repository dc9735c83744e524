// Volumes that are two files: a header and its voxels.
#pragma once

#include <string>

namespace traind {

// The other file of a pair (.hdr or .hdr.gz with .img or .img.gz) that the path is one of; empty:
// it is none, or there is no other one.
std::string OtherOfPair(const std::string& path);

}  // namespace traind
