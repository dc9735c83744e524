// Volumes whose axes are turned while they are read.
#pragma once

#include <memory>
#include <string>

#include "common/data/volume/orientation.h"
#include "common/data/volume/volume_reader.h"

namespace traind {

// Reads a volume with its axes turned. Errors name voxels by their places in the file. scratch: a
// folder for voxels that wait (SliceTurner).
// Threads: confined to one. Errors: those of the reader and of SliceTurner.
std::unique_ptr<VolumeReader> TurnedVolume(std::unique_ptr<VolumeReader> reader,
                                           const Orientation& orientation, std::string scratch);

}  // namespace traind
