// Reads any bytes as each of the small texts that people and files give: dates, numbers, quotas,
// addresses, tokens' files, lines of a program's output.
#include <absl/strings/str_split.h>

#include <cmath>

#include "common/base/host_port.h"
#include "common/base/quota_text.h"
#include "common/data/table/date_parts.h"
#include "common/data/table/date_text.h"
#include "common/data/table/number.h"
#include "common/data/table/text_features.h"
#include "common/data/table/written_date.h"
#include "server/access/token_book.h"
#include "tests/fuzz/check.h"
#include "worker/program/report_lines.h"

namespace {

using namespace traind;

void CheckDate(absl::string_view text) {
  double seconds = 0;
  const DateOrder order = text.size() % 2 == 0 ? DateOrder::kDayFirst : DateOrder::kMonthFirst;
  if (!ParseTime(text, order, seconds)) return;
  Check(std::isfinite(seconds), "a date is a finite number");
  const CalendarTime time = CalendarOf(seconds);
  Check(time.month >= 1 && time.month <= 12 && time.day >= 1 && time.day <= 31 &&
            time.weekday >= 0 && time.weekday <= 6 && time.day_of_year >= 1 &&
            time.day_of_year <= 366 && time.hour >= 0 && time.hour <= 23 && time.minute >= 0 &&
            time.minute <= 59,
        "a date is in the calendar");
  for (size_t part = 0; part < DateParts().size(); ++part) {
    Check(std::isfinite(DatePartOf(part, seconds)), "a part of a date is finite");
  }
}

void CheckNumber(absl::string_view text) {
  float value = 0;
  if (ParseNumber(text, value) != NumberKind::kNumber) return;
  Check(std::isfinite(value), "a number is finite");
  const std::string amount = PlainAmount(text);
  const std::string plain = amount.empty() ? std::string(text) : amount;
  Check(static_cast<float>(std::strtod(plain.c_str(), nullptr)) == value,
        "a number is read as strtod reads it");
  double exact = 0;
  (void)LosesDigits(text, value, exact);
  float again = 0;
  ParseNumbers(&text, 1, 1, &again);
  Check(again == value, "a column of numbers is read as single ones are");
}

void CheckTextFeatures(absl::string_view text) {
  bool ended = false;
  for (const float number : TextNumbers(text)) {
    Check(!std::isinf(number), "a number in a text is finite");
    Check(!ended || std::isnan(number), "the numbers of a text come first");
    ended = std::isnan(number);
  }
  TextWords(text, [](absl::string_view word) {
    Check(!word.empty() && word.size() <= 40, "a word has a letter, and not too many");
    for (const char c : word) Check(c < '0' || c > '9', "a word has no digit");
  });
}

void CheckReport(const ProgramReport& report) {
  for (const auto& figure : {report.epoch, report.epochs, report.loss, report.metric}) {
    Check(!figure || std::isfinite(*figure), "a figure of a program is finite");
  }
}

void CheckQuota(absl::string_view text) {
  const auto quota = QuotaFromText(text);
  if (!quota.ok()) return;
  Check(quota->period >= kShortestQuotaPeriod && quota->period <= kLongestQuotaPeriod,
        "the period of a quota is in range");
  Check(quota->allowance >= absl::ZeroDuration(), "an allowance is not negative");
}

void CheckTokens(absl::string_view text) {
  const auto tokens = ParseTokens(text);
  if (!tokens.ok()) return;
  for (const TokenEntry& token : *tokens) {
    Check(token.sha256.size() == 64 && !token.name.empty(), "a token has a hash and a name");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view text = Bytes(data, size);
  CheckTokens(text);
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    CheckDate(line);
    CheckNumber(line);
    CheckTextFeatures(line);
    CheckReport(ReadReportLine(line));
    CheckReport(ReadOutputLine(line));
    CheckQuota(line);
    (void)CheckHostPort(line, 1);
  }
  return 0;
}
