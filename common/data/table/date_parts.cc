#include "common/data/table/date_parts.h"

#include <cmath>

#include "common/data/table/date_text.h"

namespace traind {
namespace {

// Days count from 2000, so that float32 still distinguishes minutes.
constexpr double kOrigin = 946'684'800;

struct Rule {
  DatePart part;
  float (*of)(double seconds, const CalendarTime& time);
};

constexpr Rule kRules[] = {
    {{"days", false},
     [](double seconds, const CalendarTime&) {
       return static_cast<float>((seconds - kOrigin) / 86'400);
     }},
    {{"year", false},
     [](double, const CalendarTime& time) { return static_cast<float>(time.year); }},
    {{"month", true},
     [](double, const CalendarTime& time) { return static_cast<float>(time.month); }},
    {{"day", true}, [](double, const CalendarTime& time) { return static_cast<float>(time.day); }},
    {{"day_of_year", true},
     [](double, const CalendarTime& time) { return static_cast<float>(time.day_of_year); }},
    {{"weekday", true},
     [](double, const CalendarTime& time) { return static_cast<float>(time.weekday); }},
    {{"hour", true},
     [](double, const CalendarTime& time) { return static_cast<float>(time.hour); }},
    {{"minute", true},
     [](double, const CalendarTime& time) { return static_cast<float>(time.minute); }},
};
constexpr size_t kParts = sizeof kRules / sizeof kRules[0];

}  // namespace

absl::Span<const DatePart> DateParts() {
  static const auto& parts = *new std::vector<DatePart>([] {
    std::vector<DatePart> all;
    for (const Rule& rule : kRules) all.push_back(rule.part);
    return all;
  }());
  return parts;
}

float DatePartOf(size_t part, double seconds) {
  if (part >= kParts || std::isnan(seconds)) return std::nanf("");
  return kRules[part].of(seconds, CalendarOf(seconds));
}

}  // namespace traind
