#include "common/publish/mask_files.h"

#include <absl/strings/ascii.h>
#include <absl/strings/str_cat.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <set>
#include <utility>

#include "common/base/background_commits.h"
#include "common/base/durable_file.h"
#include "common/base/job_layout.h"
#include "common/base/status_macros.h"

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

// Returns each label's share of the voxels; background has no share of its own.
static std::vector<float> SharesOf(const std::vector<int64_t>& voxels, int64_t all) {
  const auto share = [all](int64_t of) {
    return static_cast<float>(static_cast<double>(of) / static_cast<double>(all));
  };
  std::vector<float> shares = {share(all - voxels[0])};
  for (size_t label = 1; label < voxels.size() && voxels.size() > 2; ++label) {
    shares.push_back(share(voxels[label]));
  }
  return shares;
}

MaskForm MaskFormOf(const std::string& name, const VolumeSet& set) {
  if (name == "npy") return MaskForm::kNpy;
  if (name == "tiff") return MaskForm::kTiff;
  if (name == "nifti") return MaskForm::kNifti;
  if (name == "png") return MaskForm::kPng;
  const auto volumes = set.volumes(Split::kTest);
  const auto all = [volumes](const auto& is) {
    return std::all_of(volumes.begin(), volumes.end(), is);
  };
  if (all([](const StoredVolume& volume) { return volume.geometry.has_value(); })) {
    return MaskForm::kNifti;
  }
  return all([](const StoredVolume& volume) { return volume.picture; }) ? MaskForm::kPng
                                                                        : MaskForm::kNpy;
}

absl::Status ReadAnswer(const VolumeSet& set, const StoredVolume& volume,
                        const JoinedValues& values, size_t begin, absl::Span<const int> largest,
                        AnswerMask::Take take) {
  AnswerMask mask(set, volume, std::move(take), largest);
  std::vector<float> slice(
      static_cast<size_t>(volume.shape.height * volume.shape.width * set.values()));
  for (int64_t z = 0; z < volume.shape.depth; ++z) {
    values.Read(begin, absl::MakeSpan(slice));
    begin += slice.size();
    RETURN_IF_ERROR(mask.Add(slice));
  }
  return mask.Finish();
}

absl::StatusOr<MaskFiles> WriteMasks(const std::string& folder, MaskForm form, const VolumeSet& set,
                                     const std::vector<std::string>& ids,
                                     const JoinedValues& values, absl::Span<const int> largest) {
  RETURN_IF_ERROR(MakeDirs(absl::StrCat(folder, "/", kMasksDir)));
  const auto volumes = set.volumes(Split::kTest);
  const std::vector<std::string> names = MaskNames(ids, volumes.size());
  MaskFiles files;
  BackgroundCommits commits;
  const int64_t width = set.values();
  size_t begin = 0;
  for (size_t row = 0; row < volumes.size(); ++row) {
    const VolumeShape& shape = volumes[row].own;
    const Orientation& orientation = volumes[row].orientation;
    const bool flat = orientation.Inverse().ShapeOf(shape).depth == 1;
    const MaskForm of_volume = form == MaskForm::kPng && !flat ? MaskForm::kNpy : form;
    files.names.push_back(absl::StrCat(kMasksDir, "/", names[row], MaskEnding(of_volume)));
    ASSIGN_OR_RETURN(
        const std::shared_ptr<MaskWriter> writer,
        MaskWriter::Create(absl::StrCat(folder, "/", files.names.back()), of_volume, shape,
                           volumes[row].geometry.value_or(NiftiGeometry()), orientation));
    std::vector<int64_t> voxels(static_cast<size_t>(std::max<int64_t>(2, width)));  // by label
    RETURN_IF_ERROR(ReadAnswer(set, volumes[row], values, begin, largest,
                               [&](int64_t, absl::Span<const uint8_t> labels) {
                                 for (const uint8_t label : labels) ++voxels[label];
                                 return writer->Append(labels);
                               }));
    RETURN_IF_ERROR(commits.Add([writer] { return writer->Commit().status(); }));
    begin += static_cast<size_t>(volumes[row].shape.voxels() * width);
    files.shares.push_back(SharesOf(voxels, shape.voxels()));
  }
  RETURN_IF_ERROR(commits.Finish());
  return files;
}

}  // namespace traind
