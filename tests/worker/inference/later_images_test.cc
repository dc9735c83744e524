// Images of later files and rows, without LibTorch.
// tests/e2e/image_predict_test.py covers the rest.
#include <absl/strings/escaping.h>
#include <absl/strings/str_cat.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>

#include "common/base/durable_file.h"
#include "common/data/image/decode.h"
#include "worker/inference/images_file.h"
#include "worker/inference/row_images.h"
#include "worker/predict/model_file.h"

namespace traind {
namespace {

using ::testing::HasSubstr;

class LaterImagesTest : public ::testing::Test {
 protected:
  LaterImagesTest() {
    std::string pattern = ::testing::TempDir() + "/later.XXXXXX";
    dir_ = std::filesystem::canonical(mkdtemp(pattern.data())).string();
    schema_.targets = {"kind"};
    schema_.classes = {"a", "b"};
    schema_.text_columns = {"file"};
    options_.fields.size = 8;
    options_.part = ImagePart::kLater;
  }
  ~LaterImagesTest() override { std::filesystem::remove_all(dir_); }

  static std::string Golden(const std::string& name) {
    return *ReadFile("tests/common/data/image/golden/" + name);
  }
  // Writes a table of `images` images, of which the first `bad` are unreadable.
  absl::StatusOr<ImagesFileInfo> WriteImages(int images, int bad, bool keep_going = true) {
    std::string table = "file\n";
    for (int i = 0; i < images; ++i) {
      EXPECT_TRUE(WriteFileDurably(absl::StrCat(dir_, "/", i, ".png"),
                                   i < bad ? "none" : Golden("small.png"))
                      .ok());
      absl::StrAppend(&table, i, ".png\n");
    }
    EXPECT_TRUE(WriteFileDurably(dir_ + "/later.csv", table).ok());
    auto input = ImageInput::Open(dir_ + "/later.csv", options_);
    EXPECT_TRUE(input.ok()) << input.status();
    const auto info = WriteRowsFile(schema_, (*input)->table(), RowsPath(), dir_ + "/ids.bin",
                                    [] { return true; });
    EXPECT_TRUE(info.ok()) << info.status();
    auto rows = RowsFile::Open(RowsPath(), schema_, info->rows);
    EXPECT_TRUE(rows.ok()) << rows.status();
    rows_ = std::make_unique<RowsFile>(std::move(*rows));
    return WriteImagesFile(**input, *rows_, kStride, RowsPath(), [&] { return keep_going; });
  }
  std::string RowsPath() const { return dir_ + "/rows.bin"; }

  static constexpr int64_t kStride = 8 * 8 * 3;
  std::string dir_;
  InputSchema schema_;
  ImageInputOptions options_;
  std::unique_ptr<RowsFile> rows_;
};

TEST_F(LaterImagesTest, PixelsLieBesideTheRowsAndABadImageIsBlack) {
  const auto info = WriteImages(30, 1);
  ASSERT_TRUE(info.ok()) << info.status();
  EXPECT_THAT(info->warning,
              HasSubstr("later.csv: 1 of 30 images cannot be read: 0.png is neither a JPEG"));
  ASSERT_TRUE(rows_->OpenImages(ImagesPath(RowsPath()), kStride).ok());
  const uint8_t* pixels = rows_->Block(0).pixels;
  const auto small = DecodeImage(Golden("small.png"), {});
  EXPECT_TRUE(std::all_of(pixels, pixels + kStride, [](uint8_t value) { return value == 0; }));
  for (int i = 1; i < 30; ++i) {
    EXPECT_TRUE(std::equal(small->pixels.begin(), small->pixels.end(), pixels + i * kStride));
  }
  EXPECT_EQ(rows_->OpenImages(ImagesPath(RowsPath()), kStride + 1).code(),
            absl::StatusCode::kDataLoss);
  EXPECT_NE(WriteImages(30, 0)->sha256, info->sha256);
  EXPECT_EQ(WriteImages(30, 0)->warning, "");
  EXPECT_EQ(WriteImages(30, 2).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(WriteImages(30, 0, false).status().code(), absl::StatusCode::kCancelled);
}

TEST_F(LaterImagesTest, ARowBringsItsImageInBase64) {
  TextRows images;
  const std::string text = absl::Base64Escape(Golden("small.png"));
  images.Add(text);
  images.Add("data:image/png;base64," + text);
  std::vector<uint8_t> pixels;
  ASSERT_TRUE(AddRowImages(options_.fields, images, pixels).ok());
  const auto small = DecodeImage(Golden("small.png"), {});
  ASSERT_EQ(pixels.size(), 2 * kStride);
  EXPECT_TRUE(std::equal(small->pixels.begin(), small->pixels.end(), pixels.begin() + kStride));
  for (const auto& [value, words] : {std::pair("/etc/passwd!", "is not an image in base64"),
                                     std::pair("", "is not an image in base64"),
                                     std::pair("bm9uZQ==", "is neither a JPEG nor a PNG")}) {
    TextRows bad;
    bad.Add(text);
    bad.Add(value);
    const absl::Status status = AddRowImages(options_.fields, bad, pixels);
    EXPECT_THAT(std::string(status.message()), HasSubstr("rows: row 2, column 'file': "));
    EXPECT_THAT(std::string(status.message()), HasSubstr(words));
    EXPECT_EQ(pixels.size(), 2 * kStride);
  }
}

TEST_F(LaterImagesTest, TheModelFileHasTheScaleAndTheSpecWhatTheImagesAre) {
  ModelFile file;
  file.input = schema_;
  file.spec_json = R"({"data":{"image":{"column":"file","size":8,"channels":3,"layout":""}}})";
  EXPECT_TRUE(WriteModelFile(dir_, ".", file).ok());
  EXPECT_EQ(ReadModelFile(dir_, ".").status().code(), absl::StatusCode::kFailedPrecondition);
  file.pixel_scale = {{127.30001f, 1.1f, 0}, {0.0123456789f, 1e-9f, 3}};
  ASSERT_TRUE(WriteModelFile(dir_, ".", file).ok());
  const auto read = ReadModelFile(dir_, ".");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->pixel_scale.mean, file.pixel_scale.mean);
  EXPECT_EQ(read->pixel_scale.inverse_scale, file.pixel_scale.inverse_scale);
  EXPECT_EQ(read->image.size, 8);
  EXPECT_EQ(read->input.text_columns, schema_.text_columns);
  file.pixel_scale.mean.pop_back();
  ASSERT_TRUE(WriteModelFile(dir_, ".", file).ok());
  EXPECT_EQ(ReadModelFile(dir_, ".").status().code(), absl::StatusCode::kDataLoss);
}

}  // namespace
}  // namespace traind
