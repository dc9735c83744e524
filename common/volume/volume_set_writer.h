// Makes a set of volumes from the files of a table's rows.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <memory>
#include <string>
#include <vector>

#include "common/durable_file.h"
#include "common/volume/volume_reader.h"
#include "common/volume/volume_set.h"

namespace traind {

// Writes slice by slice, and durably.
// Threads: confined to one. Errors: those of the readers, which leave the set as it was
// before the volume; those of DurableWriter.
class VolumeSetWriter {
 public:
  static absl::StatusOr<std::unique_ptr<VolumeSetWriter>> Create(const std::string& path);
  ~VolumeSetWriter();

  // mask: empty: none. InvalidArgument also where the volume has not the channels of the
  // set's first one.
  absl::StatusOr<StoredVolume> Add(Split split, const std::string& image, const std::string& mask);
  absl::Status Commit();

 private:
  explicit VolumeSetWriter(std::unique_ptr<DurableWriter> out);
  absl::Status Align();
  absl::Status AddVoxels(VolumeReader& reader, StoredVolume& volume);
  absl::Status AddMask(const std::string& path, StoredVolume& volume);

  const std::unique_ptr<DurableWriter> out_;
  std::vector<StoredVolume> volumes_[2];  // of Split
};

}  // namespace traind
