#include "common/publish/mask_files.h"

#include <absl/strings/str_cat.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "common/base/durable_file.h"
#include "common/data/table/npy.h"
#include "common/data/volume/volume_set_writer.h"

namespace traind {
namespace {

using ::testing::ElementsAre;

// Three volumes of 2 x 3 x 4 voxels, of which the first one alone is foreground.
class MaskFilesTest : public testing::Test {
 protected:
  MaskFilesTest() {
    std::string pattern = testing::TempDir() + "/masks.XXXXXX";
    dir_ = std::filesystem::canonical(mkdtemp(pattern.data())).string();
    Write("image.npy", {2, 3, 4}, std::vector<float>(24, 0.5f));
    auto writer = *VolumeSetWriter::Create(dir_ + "/set");
    for (int i = 0; i < 3; ++i) {
      EXPECT_TRUE(writer->Add(Split::kTest, dir_ + "/image.npy", /*mask=*/"").ok());
    }
    EXPECT_TRUE(writer->Commit().ok());
    set_ = *VolumeSet::Open(dir_ + "/set");
    std::vector<float> answers(72, 0.1f);
    std::fill(answers.begin(), answers.begin() + 24, 0.9f);
    const std::string sha256 = Write("values.npy", {72, 1}, answers);
    values_ = *TestValues::Open(dir_ + "/values.npy", sha256);
  }
  ~MaskFilesTest() override { std::filesystem::remove_all(dir_); }

  std::string Write(const std::string& name, const std::vector<int64_t>& shape,
                    const std::vector<float>& values) {
    auto out = *DurableWriter::Create(absl::StrCat(dir_, "/", name));
    EXPECT_TRUE(out->Append(NpyHeaderText("<f4", shape)).ok());
    EXPECT_TRUE(
        out->Append({reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)})
            .ok());
    return out->Commit()->sha256;
  }
  absl::StatusOr<MaskFiles> WriteAll() const {
    return WriteMasks(dir_ + "/out", MaskForm::kNpy, *set_, {"a", "b", "c"},
                      JoinedValues({values_}, AnswerJoin({{0, 0, 1}}, {}), 1), {});
  }

  std::string dir_;
  std::shared_ptr<const VolumeSet> set_;
  std::shared_ptr<const TestValues> values_;
};

TEST_F(MaskFilesTest, EachVolumeHasItsMask) {
  const auto files = WriteAll();
  ASSERT_TRUE(files.ok()) << files.status();
  EXPECT_THAT(files->names, ElementsAre("masks/a.npy", "masks/b.npy", "masks/c.npy"));
  EXPECT_THAT(files->shares, ElementsAre(ElementsAre(1), ElementsAre(0), ElementsAre(0)));
  for (const std::string& name : files->names) {
    const std::string voxels(24, name == "masks/a.npy" ? '\x01' : '\0');
    const std::string bytes = ReadFile(absl::StrCat(dir_, "/out/", name)).value_or("");
    EXPECT_EQ(bytes.substr(bytes.size() - std::min<size_t>(bytes.size(), 24)), voxels) << name;
  }
}

// Also of the last one, after which nothing is written.
TEST_F(MaskFilesTest, AMaskThatCannotBeCommittedIsAnError) {
  for (const char* taken : {"a", "c"}) {
    std::filesystem::create_directories(absl::StrCat(dir_, "/out/masks/", taken, ".npy"));
    EXPECT_FALSE(WriteAll().ok()) << taken;
    std::filesystem::remove_all(dir_ + "/out");
  }
}

}  // namespace
}  // namespace traind
