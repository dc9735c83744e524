#include "common/data/image/image_array.h"

#include <absl/strings/str_cat.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/durable_file.h"

namespace traind {
namespace {

using ::testing::HasSubstr;

std::string Golden(const std::string& name) {
  auto bytes = ReadFile(absl::StrCat("tests/common/data/image/arrays/", name, ".npy"));
  EXPECT_TRUE(bytes.ok()) << bytes.status();
  return *bytes;
}

std::string ErrorOf(const std::string& name, ImageLayout layout = ImageLayout::kAuto) {
  return std::string(
      ImageArray::Open(Golden(name), layout, {}, absl::StrCat(name, ".npy")).status().message());
}

// Compares all images, in order, with the bytes that numpy makes of them.
void ExpectNumpys(const std::string& name, std::optional<ValueRange> range = {},
                  ImageLayout layout = ImageLayout::kAuto) {
  const std::string bytes = Golden(name), expected = Golden(name + ".bytes");
  const auto header = ParseNpyHeader(expected, name);
  ASSERT_TRUE(header.ok());
  const auto array = ImageArray::Open(bytes, layout, range, name);
  ASSERT_TRUE(array.ok()) << array.status();
  EXPECT_EQ(array->shape().images, header->shape[0]);
  EXPECT_EQ(array->shape().height, header->shape[1]);
  EXPECT_EQ(array->shape().width, header->shape[2]);
  EXPECT_EQ(array->shape().channels, header->shape[3]);
  std::string pixels;
  ValueRange extent = {1e9, -1e9};
  for (int64_t i = 0; i < array->shape().images; ++i) {
    const auto image = array->Read(i, extent);
    ASSERT_TRUE(image.ok()) << image.status();
    pixels.append(image->pixels.begin(), image->pixels.end());
  }
  EXPECT_EQ(pixels, expected.substr(header->data_begin)) << name;
  EXPECT_LT(extent.black, extent.white);
}

TEST(ImageArrayTest, PixelsOfEveryTypeAndLayoutAreNumpys) {
  for (const char* name : {"colour_u1", "first_u1", "fortran_u1", "grey_u1", "grey_b1", "colour_u2",
                           "colour_f4", "grey_f8", "grey_i8"}) {
    ExpectNumpys(name);
  }
  ExpectNumpys("ct_i2", ValueRange{-1000, 400});
}

TEST(ImageArrayTest, WhatIsNoArrayOfImagesIsRefusedAndSaysWhy) {
  EXPECT_EQ(ErrorOf("flat"),
            "flat.npy has shape (6, 35); images are [N, H, W], [N, H, W, C] or [N, C, H, W]");
  EXPECT_THAT(ErrorOf("two_axes"), HasSubstr("data.image.layout says which"));
  EXPECT_EQ(ErrorOf("two_axes", ImageLayout::kChannelsLast), "");
  EXPECT_EQ(ErrorOf("two_axes", ImageLayout::kChannelsFirst), "");
  EXPECT_THAT(ErrorOf("no_axis"), HasSubstr("neither its second nor its last axis"));
  EXPECT_THAT(ErrorOf("colour_u1", ImageLayout::kChannelsFirst),
              HasSubstr("(6, 5, 7, 3), whose second axis is not 1 or 3 channels"));
  EXPECT_THAT(ErrorOf("half"), HasSubstr("has dtype '<f2'"));
  EXPECT_THAT(ErrorOf("objects"), HasSubstr("holds Python objects"));
  EXPECT_THAT(ErrorOf("big_endian"), HasSubstr("is big-endian (>u2); save it as '<u2'"));
  EXPECT_THAT(ErrorOf("cut"), HasSubstr("not a complete NPY file"));
}

TEST(ImageArrayTest, AValueThatIsNoPixelIsNamedWithItsPlace) {
  const std::string nan = Golden("nan_f4"), beyond = Golden("beyond_f4");
  auto array = ImageArray::Open(nan, ImageLayout::kAuto, {}, "nan");
  ValueRange extent;
  EXPECT_TRUE(array->Read(3, extent).ok());
  EXPECT_EQ(array->Read(4, extent).status().message(), "has no finite value at y 2, x 3");
  array = ImageArray::Open(beyond, ImageLayout::kAuto, {}, "beyond");
  EXPECT_THAT(std::string(array->Read(0, extent).status().message()),
              HasSubstr(", beyond 0 to 1 (data.image.black, data.image.white)"));
  // With a given range, values beyond it are clipped.
  array = ImageArray::Open(beyond, ImageLayout::kAuto, ValueRange{100, 101}, "beyond");
  const auto image = array->Read(0, extent);
  ASSERT_TRUE(image.ok()) << image.status();
  EXPECT_THAT(image->pixels, ::testing::Contains(255));
  EXPECT_THAT(image->pixels, ::testing::Contains(0));
}

}  // namespace
}  // namespace traind
