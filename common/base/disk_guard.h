// Keeps a program from filling the disk that traind works on.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace traind {

struct DiskSpace {
  int64_t size = 0;
  int64_t free = 0;  // for this user
};

// What is known of the file system of a folder; zeros: nothing.
DiskSpace SpaceOf(const std::string& folder);

// So much stays free for traind's own records: 2 % of the disk, at least 32 MiB and at most 1 GiB.
int64_t HeldBack(const DiskSpace& space);

// The bytes that the files below a folder take; links are not followed.
int64_t BytesBelow(const std::string& folder);

// Whether a program is to be ended: the disk is nearly full, and a good part of it is its own, so
// that its neighbours go on. Pure.
bool FillsDisk(const DiskSpace& space, int64_t own_bytes);

// In the folder of a fold: whoever keeps its program holds a lock on this file (flock).
inline constexpr char kFoldLock[] = "lock";

// Removes the files of programs that fill the disk of `state_dir` and that nobody keeps any more,
// because their keepers were killed before they could. Checkpoints are among them, as where a
// keeper ends its program. Returns the folders of their folds, relative to state_dir. `space` is
// that of the disk; nothing is looked for while there is room.
std::vector<std::string> ClearFilledDisk(const std::string& state_dir, const DiskSpace& space);

}  // namespace traind
