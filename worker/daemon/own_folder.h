// A Worker's own state folder, which holds copies of what traind has.
#pragma once

#include <cstdint>
#include <set>
#include <string>

namespace traind::worker {

// The path of a user's file that was fetched, relative to the state folder. name: its file name.
inline std::string InputPath(const std::string& sha256, const std::string& name) {
  return "inputs/" + sha256 + "/" + name;
}

// Removes what was not used for longest until the folder has at most max_bytes: Jobs' folders,
// tables of the cache, users' files. Jobs in `busy` stay, and so does what was used in the last
// minutes. Traind has all of it, so a removed file is fetched again.
// Threads: safe.
void TrimOwnFolder(const std::string& state_dir, int64_t max_bytes,
                   const std::set<std::string>& busy);

}  // namespace traind::worker
