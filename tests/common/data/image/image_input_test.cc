#include "common/data/image/image_input.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "common/base/durable_file.h"
#include "common/data/table/npy.h"

namespace traind {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class ImageInputTest : public ::testing::Test {
 protected:
  ImageInputTest() {
    options_.targets = {"digit"};
    options_.fields.size = 5;
    options_.threads = 2;
  }
  static std::string Array(const std::string& name) {
    return (std::filesystem::current_path() / "tests/common/data/image/arrays" / name).string();
  }
  absl::StatusOr<std::unique_ptr<ImageInput>> Open(const std::string& name,
                                                   const std::string& labels = "") {
    options_.fields.labels = labels.empty() ? "" : Array(labels);
    return ImageInput::Open(Array(name), options_);
  }
  std::string ErrorOf(const std::string& name, const std::string& labels = "") {
    return std::string(Open(name, labels).status().message());
  }

  ImageInputOptions options_;
};

TEST_F(ImageInputTest, AnArrayAndItsLabelsBecomeATable) {
  constexpr char kTable[] = "file,digit\n0,3\n1,1\n2,4\n3,1\n4,5\n5,9\n";
  for (const char* labels : {"labels.npy", "labels_column.npy"}) {
    const auto images = Open("colour_u1.npy", labels);
    ASSERT_TRUE(images.ok()) << images.status();
    EXPECT_EQ((*images)->table().bytes, kTable);
    EXPECT_EQ((*images)->table().name, "colour_u1.npy");
  }
  EXPECT_EQ((*Open("grey_u1.npy", "labels_f4.npy"))->table().bytes,
            "file,digit\n0,0.75\n1,0.25\n2,1\n3,0.25\n4,1.25\n5,2.25\n");
  for (const char* archive : {"mnist.npz", "medmnist.npz"}) {
    const auto images = Open(archive);
    ASSERT_TRUE(images.ok()) << images.status();
    EXPECT_EQ((*images)->table().bytes, kTable);
  }
  options_.part = ImagePart::kTest;
  EXPECT_EQ((*Open("mnist.npz"))->table().bytes, "file,digit\n0,3\n1,1\n");
  EXPECT_EQ((*Open("medmnist.npz"))->table().bytes, "file\n0\n1\n");
  EXPECT_EQ((*Open("grey_u1.npy"))->table().bytes, "file\n0\n1\n2\n3\n4\n5\n");
}

TEST_F(ImageInputTest, LabelsOfATableBringItsColumns) {
  const std::string path = ::testing::TempDir() + "/labels.csv";
  ASSERT_TRUE(WriteFileDurably(path, "digit,who\na,\"x, y\"\nb,1\na,2\nb,3\n,4\na,5\n").ok());
  options_.fields.labels = path;
  auto images = ImageInput::Open(Array("grey_u1.npy"), options_);
  ASSERT_TRUE(images.ok()) << images.status();
  EXPECT_EQ((*images)->table().bytes,
            "file,digit,who\n0,a,\"x, y\"\n1,b,1\n2,a,2\n3,b,3\n4,,4\n5,a,5\n");
  options_.fields.column = "who";
  EXPECT_THAT(std::string(ImageInput::Open(Array("grey_u1.npy"), options_).status().message()),
              HasSubstr("labels.csv has a column 'who', which is the number of the image"));
}

TEST_F(ImageInputTest, LabelsThatDoNotFitAreRefused) {
  EXPECT_EQ(ErrorOf("colour_u1.npy"),
            "colour_u1.npy has no labels: data.image.labels names a file that has them");
  EXPECT_EQ(ErrorOf("colour_u1.npy", "labels_short.npy"),
            "labels_short.npy has 5 rows of labels, colour_u1.npy has 6 images");
  EXPECT_THAT(ErrorOf("colour_u1.npy", "labels_hot.npy"), HasSubstr("numpy.argmax"));
  EXPECT_THAT(ErrorOf("colour_u1.npy", "objects.npy"), HasSubstr("holds Python objects"));
  options_.fields.train_array = "pictures";
  EXPECT_EQ(ErrorOf("mnist.npz"),
            "mnist.npz has no array 'pictures'; it has 'x_train', 'y_train', 'x_test', 'y_test' "
            "(data.image.train_array)");
}

TEST_F(ImageInputTest, ImagesAreReadByTheirNumberAndThoseThatCannotBeAreNamed) {
  const auto images = Open("nan_f4.npy", "labels.npy");
  ASSERT_TRUE(images.ok()) << images.status();
  std::vector<uint8_t> pixels(size_t{3} * 5 * 5 * 3, 7);
  const ImagesRead read =
      (*images)->Read(std::vector<std::string>{"5", "4", "0"}, absl::MakeSpan(pixels));
  ASSERT_THAT(read.errors, SizeIs(3));
  EXPECT_THAT(read.errors, ElementsAre("", "image 4 has no finite value at y 2, x 3", ""));
  EXPECT_THAT(read.warnings, IsEmpty());
  EXPECT_THAT(absl::MakeSpan(pixels).subspan(75, 75), Each(0));
  // The middle of 5 x 7 pixels: the columns from 1 on.
  const auto expected = ReadFile(Array("colour_f4.bytes.npy"));
  const size_t first = ParseNpyHeader(*expected, "")->data_begin + 3;
  for (size_t y = 0; y < 5; ++y) {
    for (size_t i = 0; i < 15; ++i) {
      EXPECT_EQ(pixels[150 + y * 15 + i], static_cast<uint8_t>((*expected)[first + y * 21 + i]));
    }
  }
}

TEST_F(ImageInputTest, PixelsThatUseLittleOfTheirTypeAreWarnedOf) {
  const auto images = Open("dim_u2.npy", "labels.npy");
  std::vector<uint8_t> pixels(size_t{2} * 5 * 5 * 3);
  const ImagesRead read =
      (*images)->Read(std::vector<std::string>{"0", "1"}, absl::MakeSpan(pixels));
  ASSERT_THAT(read.warnings, SizeIs(1));
  EXPECT_THAT(read.warnings[0], HasSubstr("of 0 to 65535, in 256 steps; set data.image.black and"));
}

TEST_F(ImageInputTest, TheDigestChangesWithTheBytesAndTheRange) {
  const std::string digest = *(*Open("colour_u1.npy", "labels.npy"))->Digest();
  EXPECT_EQ(*(*Open("colour_u1.npy", "labels_column.npy"))->Digest(), digest);
  EXPECT_NE(*(*Open("first_u1.npy", "labels.npy"))->Digest(), digest);
  options_.fields.range = ValueRange{0, 100};
  EXPECT_NE(*(*Open("colour_u1.npy", "labels.npy"))->Digest(), digest);
}

TEST(UnreadableImagesTest, AFewAreToldOfAndManyAreAnError) {
  UnreadableImages unreadable;
  for (int i = 0; i < 6; ++i) unreadable.Add("image 1 is bad");
  EXPECT_EQ(unreadable.CheckTolerable("x.npy", 100).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(*unreadable.CheckTolerable("x.npy", 120), HasSubstr("; and 1 more"));
}

}  // namespace
}  // namespace traind
