#include "common/data/table/total_row.h"

#include <absl/strings/ascii.h>
#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/strip.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <vector>

#include "common/data/table/number.h"

namespace traind {
namespace {

constexpr absl::string_view kWords[] = {
    "total",  "totals",      "grand total", "overall total", "sum",    "sums",   "summe",
    "gesamt", "gesamtsumme", "insgesamt",   "somme",         "totale", "totaal", "suma"};

bool IsTotalWord(absl::string_view text) {
  absl::ConsumeSuffix(&text, ":");
  text = absl::StripAsciiWhitespace(text);
  return std::any_of(std::begin(kWords), std::end(kWords),
                     [&](absl::string_view word) { return absl::EqualsIgnoreCase(text, word); });
}

// A number, and the unit of the last digit that its text has: 0.01 of 3.25, 10 of 1.2e2.
struct Written {
  double value = 0, unit = 1;
};

std::optional<Written> WrittenNumber(absl::string_view text) {
  float ignored;
  Written written;
  if (ParseNumber(text, ignored) != NumberKind::kNumber || !ParseExactly(text, written.value)) {
    return std::nullopt;
  }
  std::string plain = PlainAmount(text);
  if (plain.empty()) plain = std::string(text);
  const size_t power = std::min(plain.find_first_of("eE"), plain.size());
  const size_t point = std::min(plain.find('.'), power);
  const double decimals = point == power ? 0 : static_cast<double>(power - point - 1);
  const double exponent = power == plain.size() ? 0 : std::atof(plain.c_str() + power + 1);
  written.unit = std::pow(10.0, exponent - decimals);
  return written;
}

// What the rows above the last one have in a column.
struct ColumnSum {
  double sum = 0, size = 0;  // of the values, and of their magnitudes
  double largest = 0;        // magnitude
  double unit = 1;           // the smallest of the values
  int64_t numbers = 0, not_zero = 0;

  void Add(absl::string_view text) {
    const std::optional<Written> written = WrittenNumber(text);
    if (!written) return;
    sum += written->value;
    size += std::fabs(written->value);
    largest = std::max(largest, std::fabs(written->value));
    unit = std::min(unit, written->unit);
    ++numbers;
    not_zero += written->value != 0;
  }

  // Whether a total of this column tells that it is one.
  bool Telling() const {
    constexpr int64_t kLeast = 3;
    return not_zero >= kLeast && std::fabs(sum) > largest;
  }

  // Whether `total` is the sum but for the rounding of the total, and, of numbers that are not
  // whole, of each of them (three standard errors).
  bool Gives(const Written& total) const {
    constexpr double kErrors = 3, kVariance = 1.0 / 12, kDouble = 1e-9;
    double error = kDouble * size + total.unit / 2;
    if (unit < 1) error += kErrors * unit * std::sqrt(static_cast<double>(numbers) * kVariance);
    return std::fabs(total.value - sum) <= error;
  }
};

// The byte where the last line with anything on it begins.
size_t LastLine(absl::string_view bytes) {
  constexpr absl::string_view kLineEnds = "\r\n";
  size_t end = bytes.size();
  while (end > 0) {
    const size_t last = bytes.find_last_not_of(kLineEnds, end - 1);
    if (last == bytes.npos) return 0;
    const size_t before = bytes.find_last_of(kLineEnds, last);
    const size_t begin = before == bytes.npos ? 0 : before + 1;
    const absl::string_view line = bytes.substr(begin, last + 1 - begin);
    if (line.find_first_not_of(' ') != line.npos) return begin;
    end = begin;
  }
  return 0;
}

}  // namespace

std::optional<TotalRow> FindTotalRow(const CsvText& file) {
  if (file.arrays != nullptr) return std::nullopt;
  TotalRow row;
  row.at = LastLine(file.bytes);
  if (row.at <= file.first.at) return std::nullopt;
  CsvReader glance(file.bytes.substr(row.at), file.name, file.delimiter);
  const absl::StatusOr<bool> any = glance.Next();
  const std::vector<absl::string_view>& fields = glance.fields();
  if (!any.ok() || !*any || fields.size() != file.header.size()) return std::nullopt;
  const auto word = std::find_if(fields.begin(), fields.end(), IsTotalWord);
  if (word == fields.end()) return std::nullopt;
  const auto word_at = static_cast<size_t>(word - fields.begin());

  std::vector<ColumnSum> columns(fields.size());
  std::vector<size_t> summed;  // columns
  for (size_t i = 0; i < fields.size(); ++i) {
    if (WrittenNumber(fields[i])) summed.push_back(i);
  }
  if (summed.empty()) return std::nullopt;
  CsvText above = file;
  above.bytes = file.bytes.substr(0, row.at);
  int64_t rows = 0;
  const absl::Status status = ForEachBlock(above, columns.size(), [&](const CsvRows& block) {
    const absl::string_view* row_fields = block.fields();
    for (size_t i = 0; i < block.rows(); ++i, row_fields += columns.size()) {
      // Where other rows have the word, it is an ordinary value, and the walk ends.
      if (IsTotalWord(row_fields[word_at])) return absl::CancelledError("the word is a value");
      for (const size_t column : summed) columns[column].Add(row_fields[column]);
    }
    rows += static_cast<int64_t>(block.rows());
    return absl::OkStatus();
  });
  // An error may be a quoted field with several lines, of which the last is no row.
  if (!status.ok()) return std::nullopt;

  int sums = 0, others = 0;
  std::string named;
  for (size_t i = 0; i < columns.size(); ++i) {
    const std::optional<Written> total = WrittenNumber(fields[i]);
    if (!total || columns[i].numbers == 0) continue;
    const bool gives = columns[i].Gives(*total);
    others += !gives;
    if (!gives || !columns[i].Telling()) continue;
    if (++sums == 1) named = file.header[i];
  }
  if (sums + others == 0) return std::nullopt;
  row.certain = sums >= 2 || (sums == 1 && others == 0);
  const auto line =
      1 + std::count(file.bytes.begin(), file.bytes.begin() + static_cast<ptrdiff_t>(row.at), '\n');
  const std::string place = absl::StrCat(file.name, ": row ", rows + 1, " (line ", line, "), '",
                                         *word, "' in column '", file.header[word_at], "', ");
  row.warning = row.certain ? absl::StrCat(place,
                                           "left out: it holds sums of the rows above, such "
                                           "as that of column '",
                                           named, "'")
                            : absl::StrCat(place,
                                           "may hold totals, but its numbers are not the "
                                           "sums of the rows above; it is kept");
  return row;
}

}  // namespace traind
