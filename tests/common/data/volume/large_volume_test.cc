// Volumes several times larger than the memory that reading and storing them takes.
#include <absl/strings/str_cat.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "common/data/table/npy.h"
#include "common/data/volume/mask_writer.h"
#include "common/data/volume/volume_set.h"
#include "common/data/volume/volume_set_writer.h"
#include "common/publish/zip_writer.h"
#include "tests/worker/device/child_peak.h"

namespace traind {
namespace {

constexpr VolumeShape kShape{192, 512, 1024, 1};
constexpr int64_t kBytes = 192 * 512 * 1024;  // one byte per voxel
constexpr int64_t kMost = kBytes / 6;

std::string Path(const std::string& name) { return absl::StrCat(testing::TempDir(), "/", name); }

// Writes zeros except for one voxel per slice; the file has holes elsewhere.
std::string SparseNpy(const std::string& name, const std::vector<int64_t>& shape) {
  const std::string path = Path(name), header = NpyHeaderText("|u1", shape);
  std::ofstream(path, std::ios::binary) << header;
  EXPECT_EQ(truncate(path.c_str(), static_cast<off_t>(header.size()) + kBytes), 0);
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  for (int64_t z = 0; z < kShape.depth; ++z) {
    file.seekp(static_cast<std::streamoff>(header.size()) + z * 512 * 1024 + z);
    file.put('\1');
  }
  return path;
}

// Adds a volume to a set, and reads it back slice by slice.
bool Pass(const std::string& image, const std::string& mask) {
  const std::string set_path = Path("set");
  auto writer = VolumeSetWriter::Create(set_path);
  if (!writer.ok()) return false;
  const auto added = (*writer)->Add(Split::kTrain, image, mask);
  if (!added.ok() || !(*writer)->Commit().ok()) {
    std::fprintf(stderr, "%s\n", added.status().ToString().c_str());
    return false;
  }
  auto set = VolumeSet::Open(set_path);
  if (!set.ok()) return false;
  const StoredVolume& volume = (*set)->volumes(Split::kTrain)[0];
  std::vector<float> slice(static_cast<size_t>(volume.shape.slice()));
  int64_t ones = 0, masked = 0;
  const auto plane = static_cast<size_t>(volume.shape.height * volume.shape.width);
  for (int64_t z = 0; z < volume.shape.depth; ++z) {
    (*set)->ReadSlice(volume, z, absl::MakeSpan(slice));
    for (const float value : slice) ones += value == 1 ? 1 : 0;
    if (volume.has_mask) {
      for (const uint8_t label :
           (*set)->Mask(volume).subspan(static_cast<size_t>(z) * plane, plane))
        masked += label;
    }
    (*set)->Release(volume, z, 1);
  }
  unlink(set_path.c_str());
  return ones == kShape.depth && (mask.empty() || masked == kShape.depth);
}

void ExpectLittleMemory(const std::string& form, const std::string& image,
                        const std::string& mask = "") {
  const int64_t peak = PeakOfChild([&] { return Pass(image, mask); });
  std::printf("{\"form\": \"%s\", \"volume_mb\": %.1f, \"peak_mb\": %.1f}\n", form.c_str(),
              static_cast<double>(kBytes) / 1e6, static_cast<double>(peak) / 1e6);
  EXPECT_GE(peak, 0) << form;
  EXPECT_LT(peak, kMost) << form;
  unlink(image.c_str());
}

TEST(LargeVolumeTest, AnArrayWithItsMaskIsReadBySlices) {
  const std::string npy = SparseNpy("large.npy", {192, 512, 1024});
  ExpectLittleMemory("npy", npy, npy);
}

TEST(LargeVolumeTest, AnArchiveIsUnpackedAsItIsRead) {
  const std::string npy = SparseNpy("packed.npy", {192, 512, 1024}), npz = Path("large.npz");
  ASSERT_TRUE(WriteZip(npz, {{"volume.npy", npy}}).ok());
  unlink(npy.c_str());
  ExpectLittleMemory("npz", npz);
}

TEST(LargeVolumeTest, AStackIsReadPageByPage) {
  const std::string path = Path("large.tiff");
  auto writer = MaskWriter::Create(path, MaskForm::kTiff, kShape);
  ASSERT_TRUE(writer.ok());
  std::vector<uint8_t> slice(512 * 1024);
  for (size_t z = 0; z < 192; ++z) {
    slice.assign(slice.size(), 0);
    slice[z] = 1;
    ASSERT_TRUE((*writer)->Append(slice).ok());
  }
  ASSERT_TRUE((*writer)->Commit().ok());
  ExpectLittleMemory("tiff", path);
}

}  // namespace
}  // namespace traind
