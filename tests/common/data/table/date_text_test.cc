#include "common/data/table/date_text.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdio>
#include <limits>

namespace traind {
namespace {

double Seconds(absl::string_view text) {
  double seconds = -1;
  EXPECT_TRUE(ParseIsoTime(text, seconds)) << text;
  return seconds;
}

TEST(DateTextTest, ReadsDatesTimesAndZones) {
  EXPECT_EQ(Seconds("1970-01-01"), 0);
  EXPECT_EQ(Seconds("1969-12-31"), -86'400);
  EXPECT_EQ(Seconds("2000-03-01"), 951'868'800);
  EXPECT_EQ(Seconds("2026-12-01T18:00:00Z"), 1'796'148'000);
  EXPECT_EQ(Seconds("2026-12-01 18:00"), 1'796'148'000);
  EXPECT_EQ(Seconds("2026-12-01T20:00:00+02:00"), 1'796'148'000);
  EXPECT_EQ(Seconds("2026-12-01T12:30:00-0530"), 1'796'148'000);
  EXPECT_EQ(Seconds("2026-12-01T19:00:00+01"), 1'796'148'000);
  EXPECT_EQ(Seconds("1970-01-01T00:00:01.25"), 1.25);
  EXPECT_EQ(Seconds("2016-12-31T23:59:60Z"), Seconds("2017-01-01"));  // a leap second
}

TEST(DateTextTest, ReducedDatesAreTheirFirstDay) {
  EXPECT_EQ(Seconds("1749-01"), Seconds("1749-01-01"));
  EXPECT_EQ(Seconds("2024-12"), Seconds("2024-12-01"));
  EXPECT_EQ(Seconds("2024Q3"), Seconds("2024-07-01"));
  EXPECT_EQ(Seconds("2024-Q1"), Seconds("2024-01-01"));
  // Weeks as Python's date.fromisocalendar(year, week, 1) has them.
  EXPECT_EQ(Seconds("2024-W01"), Seconds("2024-01-01"));
  EXPECT_EQ(Seconds("2024-W07"), Seconds("2024-02-12"));
  EXPECT_EQ(Seconds("2021-W01"), Seconds("2021-01-04"));
  EXPECT_EQ(Seconds("2020-W53"), Seconds("2020-12-28"));
  EXPECT_EQ(Seconds("2026-W53"), Seconds("2026-12-28"));
  double seconds;
  for (const char* text : {"2024-00", "2024-13", "2024-1", "2024-", "2024Q0", "2024Q5", "2024Q",
                           "2024-W00", "2024-W53", "2024-W7", "2024W07", "2024-W07x", "2024Q33"}) {
    EXPECT_FALSE(ParseIsoTime(text, seconds)) << text;
  }
}

TEST(DateTextTest, WhatIsNoDayOfTheCalendarIsRefused) {
  double seconds;
  for (const char* text :
       {"", "1970", "1970-1-1", "1970-13-01", "1970-02-29", "2023-04-31", "1900-02-29",
        "1970-01-01T", "1970-01-01T24:00", "1970-01-01T12", "1970-01-01T12:60", "01/02/1970",
        "1970-01-01T12:00:00.", "1970-01-01T12:00+", "1970-01-01T12:00Zx", "1970-01-01x",
        "-970-01-01", "1970-01-01T12:00+25:00"}) {
    EXPECT_FALSE(ParseIsoTime(text, seconds)) << text;
  }
  EXPECT_TRUE(ParseIsoTime("2000-02-29", seconds));
}

TEST(DateTextTest, NumbersTooLargeForTimesHaveAYearAllTheSame) {
  for (const double seconds : {1e19, 1e300, std::numeric_limits<double>::infinity()}) {
    EXPECT_EQ(CalendarOf(seconds).year, CalendarOf(6e16).year);
    EXPECT_EQ(CalendarOf(-seconds).year, CalendarOf(-6e16).year);
  }
  EXPECT_GT(CalendarOf(6e16).year, 1'900'000'000);
  EXPECT_LT(CalendarOf(-6e16).year, -1'900'000'000);
}

TEST(DateTextTest, CalendarAndTextAgreeOverFourCenturies) {
  int year = 1900, month = 1, day = 1;
  for (int64_t days = -25'567; days < 120'000; ++days) {
    const CalendarTime time = CalendarOf(static_cast<double>(days * 86'400 + 3'661));
    ASSERT_EQ(time.year, year);
    ASSERT_EQ(time.month, month);
    ASSERT_EQ(time.day, day);
    ASSERT_EQ(time.weekday, ((days + 3) % 7 + 7) % 7);
    ASSERT_EQ(time.hour, 1);
    ASSERT_EQ(time.minute, 1);
    char text[16];
    std::snprintf(text, sizeof text, "%04d-%02d-%02d", year, month, day);
    ASSERT_EQ(Seconds(text), static_cast<double>(days * 86'400));
    const bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    const int of_month[] = {31, leap ? 29 : 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    if (++day <= of_month[month - 1]) continue;
    day = 1;
    if (++month <= 12) continue;
    ASSERT_EQ(time.day_of_year, leap ? 366 : 365);
    month = 1;
    ++year;
  }
}

}  // namespace
}  // namespace traind
