#include "common/data/image/decode.h"

#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <gtest/gtest.h>
#include <stdio.h>

#include <jpeglib.h>

#include <cmath>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "common/base/durable_file.h"
#include "common/data/image/encode.h"

namespace traind {
namespace {

// Files that golden/make_images.py makes.
constexpr const char* kExact[] = {"rgb.png",         "grey.png",  "palette.png",
                                  "see_through.png", "alpha.png", "grey_alpha.png",
                                  "bits.png",        "small.png", "deep.png"};
constexpr const char* kJpegs[] = {"colour.jpg", "halved.jpg", "grey.jpg", "progressive.jpg",
                                  "cmyk.jpg"};

std::string Bytes(absl::string_view name) {
  auto bytes = ReadFile(absl::StrCat("tests/common/data/image/golden/", name));
  EXPECT_TRUE(bytes.ok()) << bytes.status().ToString();
  return bytes.ok() ? *bytes : "";
}

// Reads a binary PPM or PGM file.
Image Pixels(const std::string& name) {
  const std::string bytes = Bytes(name);
  char kind = 0;
  int width = 0, height = 0, most = 0, header = 0;
  EXPECT_EQ(std::sscanf(bytes.c_str(), "P%c %d %d %d%n", &kind, &width, &height, &most, &header),
            4);
  Image image{height, width, kind == '6' ? 3 : 1, {}};
  image.pixels.assign(bytes.begin() + header + 1, bytes.end());
  return image;
}

Image Decoded(absl::string_view name, int64_t channels, int64_t least_side = 0) {
  auto image = DecodeImage(Bytes(name), {channels, least_side});
  EXPECT_TRUE(image.ok()) << name << " " << image.status().ToString();
  return image.ok() ? *image : Image();
}

void ExpectNear(const Image& image, const Image& wanted, int most) {
  ASSERT_EQ(image.height, wanted.height);
  ASSERT_EQ(image.width, wanted.width);
  ASSERT_EQ(image.channels, wanted.channels);
  ASSERT_EQ(image.pixels.size(), wanted.pixels.size());
  int worst = 0;
  for (size_t i = 0; i < image.pixels.size(); ++i) {
    worst = std::max(worst, std::abs(image.pixels[i] - wanted.pixels[i]));
  }
  EXPECT_LE(worst, most);
}

std::string ErrorOf(const std::string& bytes) {
  const auto image = DecodeImage(bytes, {});
  EXPECT_FALSE(image.ok());
  EXPECT_EQ(image.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(image.status().message());
}

TEST(DecodeTest, PngPixelsAreThoseOfPillow) {
  for (const char* name : kExact) {
    SCOPED_TRACE(name);
    ExpectNear(Decoded(name, 3), Pixels(absl::StrCat(name, ".ppm")), 0);
    ExpectNear(Decoded(name, 1), Pixels(absl::StrCat(name, ".pgm")), 0);
  }
}

TEST(DecodeTest, JpegPixelsAreThoseOfPillow) {
  for (const char* name : kJpegs) {
    SCOPED_TRACE(name);
    ExpectNear(Decoded(name, 3), Pixels(absl::StrCat(name, ".ppm")), 1);
    ExpectNear(Decoded(name, 1), Pixels(absl::StrCat(name, ".pgm")), 1);
  }
}

TEST(DecodeTest, ResizedPixelsAreThoseOfPillow) {
  for (const char* name : kExact) {
    SCOPED_TRACE(name);
    ExpectNear(CropAndResize(Decoded(name, 3), 12), Pixels(absl::StrCat(name, ".12.ppm")), 0);
  }
  ExpectNear(CropAndResize(Decoded("large.jpg", 3), 12), Pixels("large.jpg.12.ppm"), 1);
}

TEST(DecodeTest, AJpegIsDecodedSmallerWhereItBecomesSmallAnyway) {
  const Image small = Decoded("large.jpg", 3, 12);
  EXPECT_EQ(small.height, 25);
  EXPECT_EQ(small.width, 30);
  ExpectNear(CropAndResize(small, 12), Pixels("large.jpg.12.ppm"), 40);
  EXPECT_EQ(Decoded("large.jpg", 3, 51).height, 100);
}

struct Encoding {
  int64_t height, width;
  int across = 2, down = 2;  // pixels of lightness per pixel of colour
  bool progressive = false;
};

// Encodes smooth waves, which reveal interpolation at borders.
std::string EncodedJpeg(const Encoding& encoding) {
  jpeg_compress_struct info;
  jpeg_error_mgr errors;
  info.err = jpeg_std_error(&errors);
  jpeg_create_compress(&info);
  unsigned char* bytes = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&info, &bytes, &size);
  info.image_height = static_cast<JDIMENSION>(encoding.height);
  info.image_width = static_cast<JDIMENSION>(encoding.width);
  info.input_components = 3;
  info.in_color_space = JCS_RGB;
  jpeg_set_defaults(&info);
  jpeg_set_quality(&info, 92, TRUE);
  info.comp_info[0].h_samp_factor = encoding.across;
  info.comp_info[0].v_samp_factor = encoding.down;
  if (encoding.progressive) jpeg_simple_progression(&info);
  jpeg_start_compress(&info, TRUE);
  std::vector<uint8_t> line(static_cast<size_t>(encoding.width) * 3);
  while (info.next_scanline < info.image_height) {
    const double y = info.next_scanline;
    for (size_t i = 0; i < line.size(); ++i) {
      const double x = static_cast<double>(i / 3), c = static_cast<double>(i % 3);
      line[i] = static_cast<uint8_t>(127 + 120 * std::sin(0.37 * x + c) * std::cos(0.29 * y - c));
    }
    JSAMPROW row = line.data();
    jpeg_write_scanlines(&info, &row, 1);
  }
  jpeg_finish_compress(&info);
  jpeg_destroy_compress(&info);
  std::string out(reinterpret_cast<char*>(bytes), size);
  std::free(bytes);
  return out;
}

TEST(DecodeTest, WhatIsCroppedAwayNeedNotBeDecoded) {
  for (const auto& [height, width] : {std::pair<int64_t, int64_t>{97, 260},
                                      {260, 97},
                                      {200, 640},
                                      {400, 130},
                                      {120, 121},
                                      {64, 1000},
                                      {777, 40}}) {
    for (const auto& [across, down] : {std::pair<int, int>{1, 1}, {2, 1}, {2, 2}, {1, 2}, {4, 1}}) {
      for (const bool progressive : {false, true}) {
        const std::string bytes = EncodedJpeg({height, width, across, down, progressive});
        for (const int64_t size : {5, 16, 90}) {
          SCOPED_TRACE(absl::StrCat(height, "x", width, " ", across, "x", down, " ", progressive,
                                    " ", size));
          const auto whole = DecodeImage(bytes, {3, size, false});
          const auto middle = DecodeImage(bytes, {3, size, true});
          ASSERT_TRUE(whole.ok() && middle.ok());
          ASSERT_EQ(middle->height, whole->height);
          ExpectNear(CropAndResize(*middle, size), CropAndResize(*whole, size), 0);
          // Pixels outside the crop are not needed, but a file that is cut is still refused.
          EXPECT_FALSE(DecodeImage(bytes.substr(0, bytes.size() - 40), {3, size, true}).ok());
        }
      }
    }
  }
}

TEST(DecodeTest, FilesCutAnywhereAreRefused) {
  for (const char* name : {"rgb.png", "palette.png", "halved.jpg", "progressive.jpg"}) {
    const std::string bytes = Bytes(name);
    for (size_t size = 0; size < bytes.size() - 2; size += 3) {
      const auto image = DecodeImage(bytes.substr(0, size), {});
      EXPECT_FALSE(image.ok()) << name << " of " << size << " bytes";
    }
    EXPECT_TRUE(absl::StrContains(ErrorOf(bytes.substr(0, bytes.size() / 2)), "cut")) << name;
  }
}

TEST(DecodeTest, ADamagedPngIsRefused) {
  std::string bytes = Bytes("rgb.png");
  bytes[bytes.size() / 2] ^= 0x10;
  EXPECT_TRUE(absl::StrContains(ErrorOf(bytes), "is a damaged PNG file: "));
}

TEST(DecodeTest, LabelsAreTheNumbersOfTheFile) {
  const std::string palette = Bytes("palette.png"), bits = Bytes("bits.png");
  const auto indices = DecodePngLabels(palette), colours = DecodePng(palette);
  ASSERT_TRUE(indices.ok() && colours.ok()) << indices.status();
  ASSERT_EQ(indices->channels, 1);
  const size_t table = palette.find("PLTE") + 4;
  for (size_t i = 0; i < indices->pixels.size(); ++i) {
    for (size_t c = 0; c < 3; ++c) {
      EXPECT_EQ(static_cast<uint8_t>(palette[table + 3 * indices->pixels[i] + c]),
                colours->pixels[3 * i + c]);
    }
  }
  const auto values = DecodePngLabels(bits), greys = DecodePng(bits);
  ASSERT_TRUE(values.ok() && greys.ok()) << values.status();
  const int bits_a_pixel = bits[24], most = (1 << bits_a_pixel) - 1;
  ASSERT_LT(bits_a_pixel, 8);
  for (size_t i = 0; i < values->pixels.size(); ++i) {
    EXPECT_EQ(values->pixels[i] * (255 / most), greys->pixels[i]);
  }
  EXPECT_EQ(DecodePngLabels(Bytes("grey.png"))->pixels, DecodePng(Bytes("grey.png"))->pixels);
  EXPECT_EQ(DecodePngLabels(Bytes("rgb.png"))->channels, 3);
  EXPECT_TRUE(absl::StrContains(DecodePngLabels(Bytes("deep.png")).status().message(),
                                "16 bits a pixel, where labels have 8"));
}

TEST(EncodeTest, WhatWasWrittenIsRead) {
  std::vector<uint8_t> pixels(7 * 300);
  for (size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<uint8_t>(i * i % 251);
  const auto bytes = EncodePng(pixels, 7, 300);
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  const auto image = DecodePng(*bytes);
  ASSERT_TRUE(image.ok()) << image.status();
  EXPECT_EQ(image->height, 7);
  EXPECT_EQ(image->width, 300);
  EXPECT_EQ(image->channels, 1);
  EXPECT_EQ(image->pixels, pixels);
}

TEST(DecodeTest, WhatIsNoImageIsSaid) {
  EXPECT_EQ(ErrorOf(""), "is empty");
  EXPECT_EQ(ErrorOf("a,b\n1,2\n"), "is neither a JPEG nor a PNG file");
  EXPECT_TRUE(absl::StartsWith(ErrorOf("\xff\xd8\xff nothing"), "is a "));
}

TEST(DecodeTest, AnAbsurdSizeIsRefusedBeforeMemoryIsTaken) {
  std::string jpeg = Bytes("colour.jpg");
  const size_t frame = jpeg.find("\xff\xc0");
  ASSERT_NE(frame, std::string::npos);
  for (size_t i = 5; i < 9; ++i) jpeg[frame + i] = '\xfe';  // height, width
  EXPECT_TRUE(absl::StartsWith(ErrorOf(jpeg), "claims to have 65278 x 65278 pixels; at most "));
  EXPECT_TRUE(CheckImageSize(8192, 8192).ok());
  EXPECT_FALSE(CheckImageSize(8192, 8193).ok());
  EXPECT_FALSE(CheckImageSize(0, 5).ok());
}

}  // namespace
}  // namespace traind
