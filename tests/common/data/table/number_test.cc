#include "common/data/table/number.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "common/data/table/folds.h"

namespace traind {
namespace {

uint32_t Bits(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

void ExpectAsStrtod(const std::string& text) {
  float value = 0;
  ASSERT_EQ(ParseNumber(text, value), NumberKind::kNumber) << text;
  const auto expected = static_cast<float>(std::strtod(text.c_str(), nullptr));
  EXPECT_EQ(Bits(value), Bits(expected)) << text;
  // ParseNumbers gives the same value.
  const absl::string_view field = text;
  ParseNumbers(&field, 1, 1, &value);
  EXPECT_EQ(Bits(value), Bits(expected)) << text;
}

void ExpectNoNumber(absl::string_view text) {
  float value = 0;
  ParseNumbers(&text, 1, 1, &value);
  EXPECT_TRUE(std::isnan(value)) << text;
}

TEST(NumberTest, PlainNumbersAreThoseOfStrtod) {
  for (const char* text : {"0",
                           "-0",
                           "+7",
                           "1.",
                           ".5",
                           "-.25",
                           "007",
                           "3.14159265358979",
                           "9007199254740993",
                           "0.1",
                           "16777217",
                           "123456789012345678",
                           "12345678901234567890123456789012345678",
                           "0.000000000000000000000000001",
                           "1e10",
                           "1E-10",
                           "2.5e+3",
                           "1.17549435e-38",
                           "1e-45",
                           "1e-46",
                           "1e-9999",
                           "3.4028234e38",
                           "0e99999",
                           "179769313486231570000000000000000000000"}) {
    ExpectAsStrtod(text);
  }
}

TEST(NumberTest, RandomNumbersAreThoseOfStrtod) {
  SeededRandom random(1);
  char text[64];
  for (int i = 0; i < 200'000; ++i) {
    const auto whole = static_cast<unsigned long long>(random.Next() >> random.Below(64));
    const auto part = static_cast<unsigned long long>(random.Next() >> random.Below(64));
    const int exponent = static_cast<int>(random.Below(70)) - 45;
    switch (random.Below(4)) {
      case 0:
        std::snprintf(text, sizeof text, "%llu", whole);
        break;
      case 1:
        std::snprintf(text, sizeof text, "-%llu.%0*llu", whole % 100000,
                      static_cast<int>(random.Below(12)), part % 1000000);
        break;
      case 2:
        std::snprintf(text, sizeof text, "%llu.%llue%d", whole % 10, part % 100000000,
                      exponent % 30);
        break;
      default:
        std::snprintf(text, sizeof text, "0.%llu", part);
        break;
    }
    ExpectAsStrtod(text);
  }
}

TEST(NumberTest, PlainDecimalsOfEveryLengthAreThoseOfStrtod) {
  SeededRandom random(2);
  for (int i = 0; i < 100'000; ++i) {
    std::string text(1 + random.Below(18), '0');
    for (char& c : text) c = static_cast<char>('0' + random.Below(10));
    if (random.Below(2) == 0) text.insert(random.Below(text.size() + 1), ".");
    if (random.Below(2) == 0) text.insert(0, random.Below(2) == 0 ? "-" : "+");
    ExpectAsStrtod(text);
  }
}

TEST(NumberTest, WhatFloatsCannotHoldIsNotFinite) {
  float value;
  for (const char* text :
       {"inf", "-inf", "Infinity", "+INF", "-Infinity", "1e9999", "-1e9999", "1e39", "3.5e38",
        "1e400", "999999999999999999999999999999999999999999"}) {
    EXPECT_EQ(ParseNumber(text, value), NumberKind::kNotFinite) << text;
    ExpectNoNumber(text);
  }
}

TEST(NumberTest, AnythingElseIsText) {
  float value;
  for (const char* text : {"",           "-",
                           "+",          ".",
                           "-.",         "e5",
                           "1e",         "1e+",
                           "0x10",       "1_000",
                           "1,5",        "1 ",
                           " 1",         "--1",
                           "1.2.3",      "nan",
                           "NaN",        "12a",
                           "1e5.5",      "in",
                           "1234.567.9", "12345678901.23.4",
                           "1234567:",   "/2345678",
                           "infin",      "1f"}) {
    EXPECT_EQ(ParseNumber(text, value), NumberKind::kText) << text;
    ExpectNoNumber(text);
  }
  EXPECT_EQ(ParseNumber(absl::string_view("1\0", 2), value), NumberKind::kText);
}

}  // namespace
}  // namespace traind
