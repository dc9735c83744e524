#include "worker/prepare/image_media.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <numeric>

#include "common/base/durable_file.h"
#include "common/base/job_layout.h"
#include "common/base/status_macros.h"
#include "common/data/image/decode.h"
#include "common/data/image/image_cache.h"
#include "common/data/table/table_reader.h"

namespace traind {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr int64_t kSize = 8;

class ImageMediaTest : public ::testing::Test {
 protected:
  ImageMediaTest() {
    std::string pattern = ::testing::TempDir() + "/images.XXXXXX";
    dir_ = fs::canonical(mkdtemp(pattern.data()));
    fs::create_directories(dir_ + "/state/cache");
    spec_.train = dir_ + "/train";
    spec_.target = "kind";
    spec_.image.emplace().size = kSize;
  }
  ~ImageMediaTest() override { fs::remove_all(dir_); }

  void Write(const std::string& path, const std::string& bytes) const {
    fs::create_directories(fs::path(dir_ + "/" + path).parent_path());
    ASSERT_TRUE(WriteFileDurably(dir_ + "/" + path, bytes).ok());
  }
  static std::string Image(const std::string& name) {
    auto bytes = ReadFile("tests/common/data/image/golden/" + name);
    EXPECT_TRUE(bytes.ok());
    return *bytes;
  }
  // Writes 30 images of two classes.
  void WriteFolders() const {
    for (int i = 0; i < 15; ++i) {
      Write("train/cat/" + std::to_string(100 + i) + ".png", Image("rgb.png"));
      Write("train/dog/" + std::to_string(100 + i) + ".jpg", Image("large.jpg"));
    }
  }

  absl::StatusOr<TableRows> Prepare(const std::string& key = "k") {
    ASSIGN_OR_RETURN(media_, OpenImageMedia(spec_, 2));
    TableSource source;
    source.train = media_->train();
    source.test = media_->test();
    source.target = spec_.target;
    source.id = spec_.id;
    source.text_columns = media_->text_columns();
    ASSIGN_OR_RETURN(TableRows rows, ReadTable(source));
    RETURN_IF_ERROR(media_->Add(dir_ + "/state", key, rows));
    return rows;
  }

  std::string dir_;
  PrepareSpec spec_;
  std::unique_ptr<RowMedia> media_;
};

TEST_F(ImageMediaTest, FoldersBecomeATableWithPixelsAndColumnsForTheFloor) {
  WriteFolders();
  Write("test.csv", "kind,file,brightness\ncat,more/1.png,3\n");
  Write("more/1.png", Image("small.png"));
  spec_.test = dir_ + "/test.csv";
  spec_.id = "file";
  const auto rows = Prepare();
  ASSERT_TRUE(rows.ok()) << rows.status().ToString();
  EXPECT_EQ(rows->schema.train_rows, 30);
  EXPECT_THAT(rows->schema.classes, ElementsAre("cat", "dog"));
  ASSERT_THAT(rows->schema.features, SizeIs(2 * 3 + 64));
  for (const Column& feature : rows->schema.features) EXPECT_TRUE(feature.floor_only);
  ASSERT_TRUE(media_->IsCached(dir_ + "/state", "k"));
  EXPECT_FALSE(media_->IsCached(dir_ + "/state", "other"));
  const auto cache = ImageCache::Open(dir_ + "/state/" + ImageCachePath("k"));
  ASSERT_TRUE(cache.ok()) << cache.status().ToString();
  EXPECT_EQ((*cache)->shape().train_rows, 30);
  EXPECT_EQ((*cache)->shape().test_rows, 1);
  const auto small = DecodeImage(Image("small.png"), {});  // 8 x 8, as in the cache
  EXPECT_TRUE(std::equal(small->pixels.begin(), small->pixels.end(),
                         (*cache)->pixels() + 30 * (*cache)->shape().stride()));
  double sum = 0;
  for (size_t i = 0; i < small->pixels.size(); i += 3) sum += small->pixels[i];
  EXPECT_FLOAT_EQ(rows->test[0].numbers[0], static_cast<float>(sum / 64));
}

TEST_F(ImageMediaTest, RowsWhoseImageCannotBeReadAreLeftOutAndNamed) {
  WriteFolders();
  Write("train/dog/107.jpg", Image("large.jpg").substr(0, 900));
  const auto rows = Prepare();
  ASSERT_TRUE(rows.ok()) << rows.status().ToString();
  EXPECT_EQ(rows->schema.train_rows, 29);
  ASSERT_THAT(rows->schema.warnings, SizeIs(1));
  EXPECT_THAT(rows->schema.warnings[0],
              HasSubstr("1 of 30 images cannot be read: dog/107.jpg is a JPEG file that is cut"));
  EXPECT_THAT(rows->train_target.codes, SizeIs(29));
  EXPECT_THAT(rows->train[0].numbers, SizeIs(29));
  EXPECT_EQ(rows->train_texts[0][22], "dog/108.jpg");
  EXPECT_EQ((*ImageCache::Open(dir_ + "/state/" + ImageCachePath("k")))->shape().train_rows, 29);
  for (const char* name : {"101", "102", "103"}) {
    Write(std::string("train/cat/") + name + ".png", "none");
  }
  EXPECT_THAT(std::string(Prepare().status().message()),
              HasSubstr("4 of 30 images cannot be read: cat/101.png is neither"));
}

TEST_F(ImageMediaTest, TheContentChangesWithBytesSizeAndChannels) {
  WriteFolders();
  ASSERT_TRUE(Prepare().ok());
  const std::string content = media_->content();
  ASSERT_TRUE(Prepare().ok());
  EXPECT_EQ(media_->content(), content);
  spec_.image->channels = 1;
  ASSERT_TRUE(Prepare().ok());
  EXPECT_NE(media_->content(), content);
  spec_.image->channels = 3;
  Write("train/cat/103.png", Image("alpha.png"));
  ASSERT_TRUE(Prepare().ok());
  EXPECT_NE(media_->content(), content);
}

// tests/common/data/image/image_input_test.cc compares arrays with files.
TEST_F(ImageMediaTest, AnArrayIsReadAsItsTableAndItsImageWithNaNIsLeftOut) {
  const std::string arrays = fs::current_path() / "tests/common/data/image/arrays";
  spec_.train = arrays + "/nan_f4.npy";
  spec_.test = arrays + "/mnist.npz";
  spec_.image->labels = arrays + "/labels.npy";
  const auto rows = Prepare();
  ASSERT_TRUE(rows.ok()) << rows.status().ToString();
  EXPECT_EQ(rows->schema.train_rows, 5);
  EXPECT_THAT(rows->schema.classes, ElementsAre("1", "3", "4", "5", "9"));
  EXPECT_THAT(rows->train_target.codes, ElementsAre(1, 0, 2, 0, 4));
  EXPECT_TRUE(rows->schema.test_has_target);
  ASSERT_THAT(rows->schema.warnings, SizeIs(1));
  EXPECT_THAT(rows->schema.warnings[0],
              HasSubstr("nan_f4.npy: 1 of 6 images cannot be read: image 4 has no finite value"));
  const auto cache = ImageCache::Open(dir_ + "/state/" + ImageCachePath("k"));
  ASSERT_TRUE(cache.ok()) << cache.status().ToString();
  EXPECT_EQ((*cache)->shape().train_rows, 5);
  EXPECT_EQ((*cache)->shape().test_rows, 2);
}

TEST_F(ImageMediaTest, ATableWithoutTheColumnIsRefused) {
  Write("train.csv", "kind,path\ncat,1.png\n");
  spec_.train = dir_ + "/train.csv";
  EXPECT_THAT(std::string(Prepare().status().message()),
              HasSubstr("train.csv: there is no column 'file' (data.image.column)"));
}

}  // namespace
}  // namespace traind
