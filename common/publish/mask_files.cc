#include "common/publish/mask_files.h"

#include <absl/strings/ascii.h>
#include <absl/strings/str_cat.h>

#include <cstdint>
#include <memory>
#include <set>

#include "common/durable_file.h"
#include "common/job_layout.h"
#include "common/status_macros.h"

namespace traind {

std::vector<std::string> MaskNames(const std::vector<std::string>& ids, size_t rows) {
  constexpr size_t kLongest = 120;
  std::vector<std::string> names;
  std::set<std::string> taken;
  for (size_t row = 0; row < rows; ++row) {
    std::string name = ids.empty() ? absl::StrCat(row) : ids[row].substr(0, kLongest);
    for (char& c : name) {
      if (!absl::ascii_isalnum(static_cast<unsigned char>(c)) && c != '-' && c != '.') c = '_';
    }
    if (name.empty() || name[0] == '.') name.insert(0, "_");
    while (!taken.insert(name).second) absl::StrAppend(&name, "-", row);
    names.push_back(name);
  }
  return names;
}

absl::StatusOr<MaskFiles> WriteMasks(const std::string& folder, MaskForm form, const VolumeSet& set,
                                     const std::vector<std::string>& ids,
                                     absl::Span<const float> probabilities) {
  RETURN_IF_ERROR(MakeDirs(absl::StrCat(folder, "/", kMasksDir)));
  const auto volumes = set.volumes(Split::kTest);
  const std::vector<std::string> names = MaskNames(ids, volumes.size());
  MaskFiles files;
  size_t at = 0;
  std::vector<uint8_t> slice;
  for (size_t row = 0; row < volumes.size(); ++row) {
    const VolumeShape& shape = volumes[row].shape;
    files.names.push_back(
        absl::StrCat(kMasksDir, "/", names[row], form == MaskForm::kTiff ? ".tiff" : ".npy"));
    ASSIGN_OR_RETURN(
        const std::unique_ptr<MaskWriter> writer,
        MaskWriter::Create(absl::StrCat(folder, "/", files.names.back()), form, shape));
    slice.resize(static_cast<size_t>(shape.height * shape.width));
    int64_t foreground = 0;
    for (int64_t z = 0; z < shape.depth; ++z) {
      for (uint8_t& voxel : slice) {
        voxel = probabilities[at++] >= 0.5f ? 1 : 0;
        foreground += voxel;
      }
      RETURN_IF_ERROR(writer->Append(slice));
    }
    RETURN_IF_ERROR(writer->Commit().status());
    files.shares.push_back(
        static_cast<float>(static_cast<double>(foreground) / static_cast<double>(shape.voxels())));
  }
  return files;
}

}  // namespace traind
