#include "common/base/bytes_text.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>

namespace traind {
namespace {

TEST(BytesTextTest, SizesAreReadWithTheirUnits) {
  EXPECT_EQ(ParseBytes("40GiB"), int64_t{40} << 30);
  EXPECT_EQ(ParseBytes("80 GB"), int64_t{80'000'000'000});
  EXPECT_EQ(ParseBytes("1.5gib"), int64_t{3} << 29);
  EXPECT_EQ(ParseBytes("512MiB"), int64_t{512} << 20);
  EXPECT_EQ(ParseBytes("1TB"), int64_t{1'000'000'000'000});
  for (const char* bad : {"", "40", "GiB", "-1GiB", "0GB", "nanGB", "infGB", "1e40GB", "40 G"}) {
    EXPECT_EQ(ParseBytes(bad), std::nullopt) << bad;
  }
}

TEST(BytesTextTest, SizesAreToldInTheirLargestUnit) {
  EXPECT_EQ(BytesText(0), "0 bytes");
  EXPECT_EQ(BytesText(1023), "1023 bytes");
  EXPECT_EQ(BytesText(1536), "1.5 KiB");
  EXPECT_EQ(BytesText(int64_t{40} << 30), "40.0 GiB");
  EXPECT_EQ(BytesText(int64_t{5000} << 40), "5000.0 TiB");
}

}  // namespace
}  // namespace traind
