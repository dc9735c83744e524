#include "common/data/table/feature_columns.h"

#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "common/base/status_macros.h"
#include "common/data/table/csv.h"
#include "common/data/table/date_parts.h"
#include "common/data/table/date_text.h"
#include "common/data/table/feature_reader.h"

namespace traind {
namespace {

constexpr size_t kNamedColumns = 5;
// A column is free text if it has more rows than these and more than this share of its values is
// distinct.
constexpr size_t kFewRows = 100;
constexpr double kFreeTextShare = 0.9;

std::vector<int64_t> CountCodes(const std::vector<int32_t>& codes, size_t values) {
  std::vector<int64_t> counts(values);
  for (const int32_t code : codes) {
    if (code >= 0) ++counts[static_cast<size_t>(code)];
  }
  return counts;
}

size_t RowsWith(const std::vector<int32_t>& codes, int32_t code) {
  return static_cast<size_t>(std::count(codes.begin(), codes.end(), code));
}

// How many distinct values a column has, of which `distinct` were counted. Values of uncounted rows
// are taken to repeat as often as the counted ones that are rare, too.
double LikelyValues(size_t distinct, size_t kept, size_t present, size_t rare, size_t uncounted) {
  if (uncounted == 0) return static_cast<double>(distinct);
  const bool any = distinct > kept;
  const auto values = static_cast<double>(any ? distinct - kept : distinct);
  const auto rows = static_cast<double>(any ? rare - uncounted : present - uncounted);
  return static_cast<double>(distinct) + static_cast<double>(uncounted) * values / rows;
}

// Whether every row has the same value, or none has one. A constant with gaps is not such a column:
// its gaps carry information.
bool AllTheSame(const std::vector<float>& numbers) {
  return std::all_of(numbers.begin(), numbers.end(), [&](float x) { return x == numbers[0]; });
}

}  // namespace

std::string NameColumns(const std::vector<std::string>& names) {
  std::string text = names.size() == 1 ? "column " : "columns ";
  for (size_t i = 0; i < std::min(names.size(), kNamedColumns); ++i) {
    absl::StrAppend(&text, i == 0 ? "'" : ", '", names[i], "'");
  }
  if (names.size() > kNamedColumns) {
    absl::StrAppend(&text, " and ", names.size() - kNamedColumns, " more");
  }
  return text;
}

std::string Place(absl::string_view file, int64_t row, int64_t line, absl::string_view column) {
  return absl::StrCat(file, ": row ", row, " (line ", line, "), column '", column, "'");
}

std::string Place(absl::string_view file, int64_t row, absl::string_view column) {
  return absl::StrCat(file, ": row ", row, ", column '", column, "'");
}

std::string WrittenDatesWarning(absl::string_view file, absl::string_view column,
                                absl::string_view example, DateOrder order) {
  const CalendarTime day = CalendarOf([&] {
    double seconds = 0;
    ParseTime(example, order, seconds);
    return seconds;
  }());
  return absl::StrFormat(
      "%s: column '%s' holds dates such as '%s', which is read as %04d-%02d-%02d", file, column,
      example, day.year, day.month, day.day);
}

FeatureColumns::Verdict FeatureColumns::Classify(size_t at, std::vector<std::string>& warnings) {
  ColumnValues& column = columns_.values(at);
  if (columns_.use(at) == ColumnUse::kNumbers) {
    const std::vector<float>& numbers = column.numbers.numbers();
    const auto first = std::find_if(numbers.begin(), numbers.end(),
                                    [](float number) { return !std::isnan(number); });
    if (first == numbers.end()) return Verdict::kEmpty;
    if (AllTheSame(numbers)) return Verdict::kConstant;
    return IsIndex(at) ? Verdict::kIndex : Verdict::kFeature;
  }
  if (columns_.use(at) == ColumnUse::kTimes) {
    const std::vector<double>& times = column.times.values();
    const auto missing =
        std::count_if(times.begin(), times.end(), [](double time) { return std::isnan(time); });
    if (missing == static_cast<ptrdiff_t>(times.size())) return Verdict::kEmpty;
    const bool constant =
        std::all_of(times.begin(), times.end(), [&](double time) { return time == times[0]; });
    return constant ? Verdict::kConstant : Verdict::kFeature;
  }
  return ClassifyTexts(at, warnings);
}

FeatureColumns::Verdict FeatureColumns::ClassifyTexts(size_t at,
                                                      std::vector<std::string>& warnings) {
  ColumnValues& column = columns_.values(at);
  const size_t uncounted = RowsWith(column.codes, kUnseenCode);
  const size_t distinct = OrderCategories(column);
  if (distinct == 0) return Verdict::kEmpty;
  const size_t present = column.codes.size() - RowsWith(column.codes, kMissingCode);
  if (distinct == 1 && present == column.codes.size()) return Verdict::kConstant;
  const size_t rare = RowsWith(column.codes, kUnseenCode);
  const size_t kept = column.dictionary.values().size();
  const double all = LikelyValues(distinct, kept, present, rare, uncounted);
  if (present > kFewRows && all > kFreeTextShare * static_cast<double>(present)) {
    return Verdict::kFreeText;
  }
  if (rare > 0) {
    warnings.push_back(absl::StrCat(
        file_, ": column '", names_[at], "' has ", uncounted > 0 ? "more than " : "", distinct,
        " distinct values: the ", kept, " most frequent are its categories, and the others, of ",
        rare, " of ", present, " rows, count as unknown"));
  }
  return Verdict::kFeature;
}

// Whether the column is the one that pandas puts before all others: numbers of rows, without a
// name.
bool FeatureColumns::IsIndex(size_t at) const {
  if (at > 0 || !absl::EqualsIgnoreCase(names_[at], UnnamedColumn(0))) return false;
  std::vector<float> numbers = columns_.values(at).numbers.numbers();
  const bool whole = std::all_of(numbers.begin(), numbers.end(),
                                 [](float number) { return number == std::trunc(number); });
  if (!whole) return false;  // or missing
  std::sort(numbers.begin(), numbers.end());
  return std::adjacent_find(numbers.begin(), numbers.end()) == numbers.end();
}

// Orders values by descending frequency, then by their text, and keeps the first kMaxCategories;
// values of no row are dropped. Returns how many values have rows.
size_t FeatureColumns::OrderCategories(ColumnValues& column) {
  const std::vector<absl::string_view>& values = column.dictionary.values();
  const std::vector<int64_t> counts = CountCodes(column.codes, values.size());
  std::vector<int32_t> order;
  for (size_t code = 0; code < values.size(); ++code) {
    if (counts[code] > 0) order.push_back(static_cast<int32_t>(code));
  }
  std::sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    const int64_t of_a = counts[static_cast<size_t>(a)];
    const int64_t of_b = counts[static_cast<size_t>(b)];
    return of_a != of_b ? of_a > of_b
                        : values[static_cast<size_t>(a)] < values[static_cast<size_t>(b)];
  });
  const size_t distinct = order.size();
  order.resize(std::min(distinct, kMaxCategories));
  std::vector<int32_t> to(values.size(), kUnseenCode);
  for (size_t i = 0; i < order.size(); ++i) {
    to[static_cast<size_t>(order[i])] = static_cast<int32_t>(i);
  }
  for (int32_t& code : column.codes) {
    if (code >= 0) code = to[static_cast<size_t>(code)];
  }
  column.dictionary.Reorder(order);
  return distinct;
}

void FeatureColumns::AddDateFeatures(size_t at, std::vector<Column>& schema,
                                     std::vector<ColumnRows>& rows,
                                     std::vector<std::string>& dates) {
  const std::vector<double>& times = columns_.values(at).times.values();
  bool any = false;
  int part = -1;
  for (const DatePart& date : DateParts()) {
    ++part;
    if (only_cycles_ == at && !date.cycle) continue;
    ColumnRows values;
    values.numbers.reserve(times.size());
    for (const double time : times) {
      values.numbers.push_back(DatePartOf(static_cast<size_t>(part), time));
    }
    if (AllTheSame(values.numbers)) continue;
    Column feature;
    feature.name = absl::StrCat(names_[at], ".", date.name);
    feature.source = names_[at];
    feature.date_part = part;
    feature.date_order = columns_.values(at).times.order();
    schema.push_back(std::move(feature));
    rows.push_back(std::move(values));
    features_.push_back({at, part, 0});
    any = true;
  }
  if (any) dates.push_back(names_[at]);
}

void FeatureColumns::PlanTextFeatures(const std::vector<uint32_t>& kept) {
  std::vector<size_t> columns;
  std::vector<std::vector<TextFeature>> parts;
  std::vector<std::vector<FrequentWord>> words;
  for (size_t at = 0; at < columns_.size(); ++at) {
    const ColumnUse use = columns_.use(at);
    if (skipped_.count(at) > 0 || (use != ColumnUse::kText && use != ColumnUse::kKeys)) continue;
    ColumnValues& column = columns_.values(at);
    KeepRows(kept, column.codes);
    if (!text_features_ || use != ColumnUse::kText) continue;
    const std::vector<absl::string_view>& values = column.dictionary.values();
    const std::vector<int64_t> rows = CountCodes(column.codes, values.size());
    columns.push_back(at);
    parts.push_back(PlainTextFeatures(values, rows));
    const size_t known = kept.size() - RowsWith(column.codes, kUnseenCode);
    words.push_back(FrequentWords(values, rows, static_cast<int64_t>(known)));
  }
  const std::vector<size_t> taken = WordsToTake(words, static_cast<int64_t>(kept.size()));
  for (size_t i = 0; i < columns.size(); ++i) {
    for (size_t word = 0; word < taken[i]; ++word) {
      parts[i].push_back({TextFeature::Kind::kWord, 0, words[i][word].word});
    }
    if (!parts[i].empty()) text_readers_.emplace(columns[i], std::move(parts[i]));
  }
}

// [part]. REQUIRES: the column's categories are not ordered yet.
std::vector<ColumnRows> FeatureColumns::TextFeatureRows(size_t at) const {
  std::vector<ColumnRows> rows;
  const auto reader = text_readers_.find(at);
  if (reader == text_readers_.end()) return rows;
  const ColumnValues& column = columns_.values(at);
  const std::vector<absl::string_view>& values = column.dictionary.values();
  const size_t parts = reader->second.parts().size();
  rows.resize(parts);
  // Of each value; the last is that of missing texts. What stands in rows whose values were not
  // counted any more is not known.
  std::vector<float> made((values.size() + 1) * parts);
  for (size_t value = 0; value <= values.size(); ++value) {
    reader->second.Read(value < values.size() ? values[value] : "", made.data() + value * parts);
  }
  for (size_t part = 0; part < parts; ++part) {
    std::vector<float>& numbers = rows[part].numbers;
    numbers.reserve(column.codes.size());
    for (const int32_t code : column.codes) {
      const size_t value = code >= 0 ? static_cast<size_t>(code) : values.size();
      numbers.push_back(code == kUnseenCode ? std::nanf("") : made[value * parts + part]);
    }
  }
  return rows;
}

void FeatureColumns::AddTextFeatures(size_t at, std::vector<ColumnRows> parts,
                                     std::vector<Column>& schema, std::vector<ColumnRows>& rows) {
  for (size_t i = 0; i < parts.size(); ++i) {
    Column& feature = schema.emplace_back();
    feature.source = names_[at];
    feature.text_feature = text_readers_.at(at).parts()[i];
    feature.name = absl::StrCat(names_[at], ".", TextFeatureName(feature.text_feature));
    rows.push_back(std::move(parts[i]));
    features_.push_back({at, static_cast<int>(i), 0});
  }
}

// Where float32 has not enough digits for the numbers, subtracts their middle from all of them, and
// returns it; else returns 0.
double FeatureColumns::Centre(NumberColumn& column) {
  constexpr double kGain = 4;  // two binary places
  const std::vector<double>& exact = column.exact();
  double low = std::numeric_limits<double>::max(), high = std::numeric_limits<double>::lowest();
  for (const double number : exact) {
    if (std::isnan(number)) continue;
    low = std::min(low, number);
    high = std::max(high, number);
  }
  if (!(low < high) || std::max(std::abs(low), std::abs(high)) < kGain * (high - low)) return 0;
  const double middle = std::floor(low + (high - low) / 2);
  for (size_t i = 0; i < exact.size(); ++i) {
    column.numbers()[i] = static_cast<float>(exact[i] - middle);
  }
  return middle;
}

absl::Status FeatureColumns::Finish(const std::vector<uint32_t>& kept, std::vector<Column>& schema,
                                    std::vector<ColumnRows>& rows,
                                    std::vector<std::string>& warnings) {
  std::vector<std::string> empty, constant, free_text, only_parts, parts, index, dates;
  PlanTextFeatures(kept);
  const BadValue* bad = nullptr;
  size_t bad_at = 0;
  for (size_t i = 0; i < columns_.size(); ++i) {
    if (skipped_.count(i) > 0 || columns_.use(i) == ColumnUse::kSkipped) continue;
    ColumnValues& column = columns_.values(i);
    const bool numeric = columns_.use(i) == ColumnUse::kNumbers;
    double offset = 0;
    const BadValue& value = column.numbers.not_finite();
    if (value.row > 0 && (bad == nullptr || value.row < bad->row)) {
      bad = &value;
      bad_at = i;
    }
    if (numeric) {
      if (column.numbers.texts().count > 0) {
        warnings.push_back(StrayTextsWarning(file_, names_[i], column.numbers.texts()));
      }
      KeepRows(kept, column.numbers.numbers());
      if (!column.numbers.exact().empty()) {
        KeepRows(kept, column.numbers.exact());
        offset = Centre(column.numbers);
      }
    } else if (columns_.use(i) == ColumnUse::kTimes) {
      if (column.times.texts().count > 0) {
        warnings.push_back(StrayTextsWarning(file_, names_[i], column.times.texts(), "date"));
      }
      KeepRows(kept, column.times.values());
    }
    std::vector<ColumnRows> of_texts = TextFeatureRows(i);
    switch (Classify(i, warnings)) {
      case Verdict::kEmpty:
        empty.push_back(names_[i]);
        continue;
      case Verdict::kConstant:
        constant.push_back(names_[i]);
        continue;
      case Verdict::kFreeText:
        (of_texts.empty() ? free_text : only_parts).push_back(names_[i]);
        AddTextFeatures(i, std::move(of_texts), schema, rows);
        continue;
      case Verdict::kIndex:
        index.push_back(names_[i]);
        continue;
      case Verdict::kFeature:
        break;
    }
    if (columns_.use(i) == ColumnUse::kTimes) {
      const TimeColumn& times = column.times;
      if (times.written().row > 0 && only_cycles_ != i) {
        warnings.push_back(
            WrittenDatesWarning(file_, names_[i], times.written().text, times.order()));
      }
      AddDateFeatures(i, schema, rows, dates);
      continue;
    }
    features_.push_back({i, -1, offset});
    Column feature;
    feature.name = names_[i];
    feature.offset = offset;
    ColumnRows values;
    if (numeric) {
      values.numbers = std::move(column.numbers.numbers());
    } else {
      feature.kind = ColumnKind::kCategorical;
      const auto& categories = column.dictionary.values();
      feature.categories = std::vector<std::string>(categories.begin(), categories.end());
      values.codes = std::move(column.codes);
    }
    schema.push_back(std::move(feature));
    rows.push_back(std::move(values));
    if (!of_texts.empty()) parts.push_back(names_[i]);
    AddTextFeatures(i, std::move(of_texts), schema, rows);
  }
  if (bad != nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat(Place(file_, bad->row, bad->line, names_[bad_at]), ": '", bad->text,
                     "' is not a finite number"));
  }
  const auto warn = [&](const std::vector<std::string>& names, absl::string_view why) {
    if (names.empty()) return;
    warnings.push_back(absl::StrCat(file_, ": ", NameColumns(names), " ignored: ", why));
  };
  warn(empty, "no value");
  warn(constant, "the same value in every row");
  warn(free_text, "nearly every row has a value of its own");
  const auto tell = [&](const std::vector<std::string>& names, absl::string_view what) {
    if (names.empty()) return;
    warnings.push_back(absl::StrCat(file_, ": ", NameColumns(names),
                                    names.size() == 1 ? " holds texts: its" : " hold texts: their",
                                    " numbers, lengths and frequent words are features", what));
  };
  tell(parts, ", too");
  tell(only_parts,
       ", not the texts themselves, of which nearly every row has its own; data.text is for long "
       "ones");
  warn(index, "it numbers the rows; give it a name to use it");
  if (!dates.empty()) {
    warnings.push_back(absl::StrCat(file_, ": ", NameColumns(dates),
                                    dates.size() == 1 ? " is a date" : " are dates",
                                    ": year, month, weekday and the like are the features"));
  }
  if (schema.empty() && !may_be_none_) {
    return absl::InvalidArgumentError(absl::StrCat(file_, ": no column is left to learn from",
                                                   warnings.empty() ? "" : "; ",
                                                   warnings.empty() ? "" : warnings.back()));
  }
  return absl::OkStatus();
}

absl::Status FeatureColumns::AddTestRows(const CsvRows& test, size_t columns,
                                         const std::vector<size_t>& feature_at,
                                         absl::string_view file, int64_t before,
                                         std::vector<ColumnRows>& rows,
                                         std::vector<StrayTexts>& strays) const {
  return AddFeatureRows(TestFields(feature_at), test, columns, {file, file_, before}, rows,
                        &strays);
}

absl::Status FeatureColumns::CheckTestRows(absl::string_view file,
                                           const std::vector<StrayTexts>& strays,
                                           std::vector<std::string>& warnings) const {
  const std::vector<size_t> nowhere(features_.size());
  return CheckStrayTexts(TestFields(nowhere), {file, file_}, strays, warnings);
}

std::vector<FeatureField> FeatureColumns::TestFields(const std::vector<size_t>& feature_at) const {
  std::vector<FeatureField> fields;
  for (size_t f = 0; f < features_.size(); ++f) {
    const size_t at = features_[f].at;
    const ColumnUse use = columns_.use(at);
    FeatureField& field = fields.emplace_back();
    field.column = feature_at[f];
    field.name = names_[at];
    field.offset = features_[f].offset;
    const int part = features_[f].part;
    if (use == ColumnUse::kText && part >= 0) {
      field.text = true;
      if (part == 0) field.parts = &text_readers_.at(at);
    } else if (use == ColumnUse::kText || use == ColumnUse::kKeys) {
      field.categories = &columns_.values(at).dictionary;
    } else if (use == ColumnUse::kTimes) {
      field.date_part = part;
      field.date_order = columns_.values(at).times.order();
    }
  }
  return fields;
}

}  // namespace traind
