// Makes a set of volumes from the files of a table's rows.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <memory>
#include <string>
#include <vector>

#include "common/base/durable_file.h"
#include "common/data/volume/mask_reader.h"
#include "common/data/volume/volume_reader.h"
#include "common/data/volume/volume_set.h"
#include "common/data/volume/volume_set_index.h"
#include "common/data/volume/volume_treatment.h"

namespace traind {

// Writes the set durably, slice by slice.
// Threads: confined to one. Errors: those of the readers, after which the set is as before the
// volume; those of DurableWriter.
class VolumeSetWriter {
 public:
  // classes: names of the masks' values from 1 on; empty: one foreground class without a name.
  static absl::StatusOr<std::unique_ptr<VolumeSetWriter>> Create(
      const std::string& path, std::vector<std::string> classes = {},
      const VolumeTreatment& treatment = {});
  ~VolumeSetWriter();

  // mask: empty means that there is none. InvalidArgument: also if the number of channels differs
  // from the first volume's, or if the treatment needs a spacing that the image's file does not
  // tell.
  absl::StatusOr<StoredVolume> Add(Split split, const std::string& image, const std::string& mask);
  absl::StatusOr<FileDigest> Commit();

 private:
  VolumeSetWriter(const std::string& path, std::unique_ptr<DurableWriter> out,
                  std::vector<std::string> classes, const VolumeTreatment& treatment);
  absl::Status Align();
  absl::Status AddVoxels(VolumeReader& reader, StoredVolume& volume);
  absl::Status AddMask(const std::string& path, StoredVolume& volume);
  absl::Status AddOwnMask(const std::string& path, StoredVolume& volume);
  absl::StatusOr<std::unique_ptr<MaskReader>> OpenMask(const std::string& path,
                                                       const StoredVolume& volume) const;

  const std::unique_ptr<DurableWriter> out_;
  const std::string scratch_;  // the folder where voxels of turned files wait
  VolumeIndex index_;
};

}  // namespace traind
