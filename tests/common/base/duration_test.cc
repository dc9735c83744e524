#include "common/base/duration.h"

#include <gtest/gtest.h>

#include <string>

namespace traind {
namespace {

absl::Duration Parsed(absl::string_view text) {
  const auto duration = DurationFromText(text);
  EXPECT_TRUE(duration.ok()) << text << ": " << duration.status();
  return duration.value_or(-absl::InfiniteDuration());
}

std::string Refusal(absl::string_view text) {
  const auto duration = DurationFromText(text);
  return duration.ok() ? "accepted" : std::string(duration.status().message());
}

TEST(DurationTest, UnitsAddUp) {
  EXPECT_EQ(Parsed("90s"), absl::Seconds(90));
  EXPECT_EQ(Parsed("15m"), absl::Minutes(15));
  EXPECT_EQ(Parsed("1h30m"), absl::Minutes(90));
  EXPECT_EQ(Parsed("2d"), absl::Hours(48));
  EXPECT_EQ(Parsed("45h"), absl::Hours(45));
  EXPECT_EQ(Parsed("500ms"), absl::Milliseconds(500));
  EXPECT_EQ(Parsed("1d2h3m4s5ms"), absl::Hours(26) + absl::Minutes(3) + absl::Milliseconds(4005));
  EXPECT_EQ(Parsed("0s"), absl::ZeroDuration());
  EXPECT_EQ(Parsed("1.5h"), absl::Minutes(90));
  EXPECT_EQ(Parsed("0.25s"), absl::Milliseconds(250));
  EXPECT_EQ(Parsed("0.000000001s"), absl::Nanoseconds(1));
}

TEST(DurationTest, BlanksMayStandBetweenNumbersAndUnits) {
  for (const char* text : {"20 s", " 20s", "20s ", " 20  s "}) {
    EXPECT_EQ(Parsed(text), absl::Seconds(20)) << text;
  }
  EXPECT_EQ(Parsed("1h 30 m"), absl::Minutes(90));
  EXPECT_EQ(Parsed("3 seconds"), absl::Seconds(3));
  EXPECT_EQ(Parsed("1 hour 1 minute"), absl::Minutes(61));
  EXPECT_EQ(Parsed("1hr 2mins 3sec"), absl::Seconds(3723));
  EXPECT_EQ(Parsed("2days"), absl::Hours(48));
  EXPECT_EQ(Refusal("2ds"), "'2ds' has the unit 'ds', which must be one of: d, h, m, s, ms");
  EXPECT_EQ(Refusal("1 h 30"),
            "'1 h 30' has no unit after 30; write 90s, 15m, 1h30m, 2d, HH:MM:SS or D-HH:MM:SS");
}

TEST(DurationTest, SlurmsClocksAreRead) {
  EXPECT_EQ(Parsed("01:30:00"), absl::Minutes(90));
  EXPECT_EQ(Parsed("1:30:05"), absl::Seconds(5405));
  EXPECT_EQ(Parsed("100:00:00"), absl::Hours(100));
  EXPECT_EQ(Parsed("2-03:04:05"), absl::Hours(51) + absl::Seconds(245));
}

TEST(DurationTest, ABareNumberIsRefusedWithAHint) {
  EXPECT_EQ(Refusal("90"), "'90' has no unit; write 90s or 90m");
  EXPECT_EQ(Refusal("1.5"), "'1.5' has no unit; write 1.5s or 1.5m");
  EXPECT_EQ(Refusal("1h30"),
            "'1h30' has no unit after 30; write 90s, 15m, 1h30m, 2d, HH:MM:SS or D-HH:MM:SS");
}

TEST(DurationTest, OtherTextsAreRefused) {
  EXPECT_EQ(Refusal("30:00"), "'30:00' could be minutes or hours; write HH:MM:SS");
  EXPECT_EQ(Refusal("00:60:00"), "'00:60:00' is not a duration: minutes and seconds go to 59");
  EXPECT_EQ(Refusal("1-24:00:00"),
            "'1-24:00:00' is not a duration: hours go to 23, minutes and seconds to 59");
  EXPECT_EQ(Refusal("-5s"), "'-5s' is negative");
  EXPECT_EQ(Refusal("5w"), "'5w' has the unit 'w', which must be one of: d, h, m, s, ms");
  EXPECT_EQ(Refusal("30m1h"), "'30m1h' is not a duration: the larger unit comes first, each once");
  EXPECT_EQ(Refusal("1h1h"), "'1h1h' is not a duration: the larger unit comes first, each once");
  EXPECT_EQ(Refusal("40000d"), "'40000d' is more than 100 years");
  for (const char* bad : {"", "h", " ", "5 5s", "s 5", "1.2.3s", ".5s", "5.s", "1e3s", "inf",
                          "99999999999s", "1-2:3:4", "::", "1::00", "5S", "\xc2\xb5s"}) {
    EXPECT_NE(Refusal(bad), "accepted") << bad;
  }
  EXPECT_EQ(Refusal(std::string(100, '1')), "is too long for a duration");
}

TEST(DurationTest, ShownWithTwoUnitsAtMost) {
  EXPECT_EQ(DurationToText(absl::ZeroDuration()), "0s");
  EXPECT_EQ(DurationToText(absl::Microseconds(1)), "0s");
  EXPECT_EQ(DurationToText(absl::Milliseconds(999)), "999ms");
  EXPECT_EQ(DurationToText(absl::Milliseconds(41999)), "41s");
  EXPECT_EQ(DurationToText(absl::Seconds(65)), "1m05s");
  EXPECT_EQ(DurationToText(absl::Minutes(62)), "1h02m");
  EXPECT_EQ(DurationToText(absl::Hours(51)), "2d03h");
  EXPECT_EQ(DurationToText(-absl::Seconds(3)), "-3s");
  EXPECT_EQ(DurationToText(-absl::Microseconds(1)), "0s");
  EXPECT_EQ(DurationToText(absl::InfiniteDuration()), "never");
}

TEST(TimestampTest, Rfc3339ComesAndGoes) {
  const absl::Time time = absl::FromUnixMillis(1796148000123);
  EXPECT_EQ(TimestampToText(time), "2026-12-01T18:00:00.123Z");
  EXPECT_EQ(TimestampFromText("2026-12-01T18:00:00.123Z").value_or(absl::InfinitePast()), time);
  EXPECT_EQ(TimestampFromText("2026-12-01T19:00:00.123+01:00").value_or(absl::InfinitePast()),
            time);
  EXPECT_EQ(TimestampToText(absl::UnixEpoch()), "1970-01-01T00:00:00.000Z");
}

TEST(TimestampTest, OtherTextsAreRefused) {
  EXPECT_EQ(TimestampFromText("2026-12-01T18:00:00").status().message(),
            "'2026-12-01T18:00:00' has no time zone; add Z, or an offset like +02:00");
  for (const char* bad :
       {"", "infinite-future", "2026-12-01", "2026-12-01 18:00:00Z", "2026-13-01T18:00:00Z",
        "2026-12-01T25:00:00Z", "2026-02-30T00:00:00Z", "02026-12-01T18:00:00Z",
        "2026-12-01T18:00:00.Z", "2026-12-01T18:00:00Zx", " 2026-12-01T18:00:00Z"}) {
    EXPECT_FALSE(TimestampFromText(bad).ok()) << bad;
  }
}

}  // namespace
}  // namespace traind
