#include "server/intake/column_sample.h"

#include <absl/algorithm/container.h>
#include <absl/strings/ascii.h>
#include <absl/strings/str_cat.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <unordered_set>
#include <vector>

#include "common/base/status_macros.h"
#include "common/data/table/csv.h"
#include "common/data/table/decimal_commas.h"
#include "common/data/table/number.h"
#include "common/spec/field_text.h"

namespace traind {
namespace {

constexpr size_t kLongestShown = 40;
constexpr size_t kMostClasses = 20;     // of whole numbers
constexpr int64_t kRowsPerClass = 10;   // so many at least, if they are whole numbers
constexpr double kNumericShare = 0.95;  // of the values of a column that is numeric
constexpr double kZeroShare = 0.02;     // so many at least, of counts
constexpr double kLeastSkewness = 1;    // of a target that may be learnt transformed
constexpr double kLeastScatter = 0.5;   // of counts: the variance by the mean; Poisson's is 1

class Collector {
 public:
  explicit Collector(ColumnSample& sample) : sample_(sample) {}

  void Add(absl::string_view value) {
    ++sample_.rows;
    if (IsMissing(value)) return;
    ++sample_.values;
    if (IsMissingNumber(value)) {
      ++marks_;
      if (mark_.empty()) mark_ = std::string(value);
    }
    float number = 0;
    if (ParseNumber(value, number) == NumberKind::kNumber) {
      ++sample_.numbers;
      sample_.whole &= number == std::trunc(number);
      sample_.negative |= number < 0;
      sample_.zeros += number == 0;
      // Welford 1962.
      const double distance = number - sample_.mean;
      sample_.mean += distance / static_cast<double>(sample_.numbers);
      squares_ += distance * (number - sample_.mean);
      all_.push_back(number);
      if (!Full()) numbers_.insert(number);
      return;
    }
    if (sample_.text.empty() && !IsMissingNumber(value)) {
      sample_.text = Printable(value, kLongestShown);
    }
    words_ += WordsIn(value);
    if (!Full()) texts_.emplace(value);
  }

  // A dash is a missing value among numbers, and may be a class among texts.
  void Finish() {
    const auto others = static_cast<double>(sample_.values - marks_);
    if (static_cast<double>(sample_.numbers) >= kNumericShare * others && sample_.numbers > 0) {
      sample_.values -= marks_;
      for (auto at = texts_.begin(); at != texts_.end();) {
        at = IsMissingNumber(*at) ? texts_.erase(at) : std::next(at);
      }
    } else if (sample_.text.empty()) {
      sample_.text = Printable(mark_, kLongestShown);
    }
    sample_.distinct = numbers_.size() + texts_.size();
    const int64_t texts = sample_.values - sample_.numbers;
    if (texts > 0) sample_.words = words_ / static_cast<double>(texts);
    if (sample_.numbers > 0) sample_.variance = squares_ / static_cast<double>(sample_.numbers);
    if (!all_.empty()) DescribeShape();
  }

 private:
  static double WordsIn(absl::string_view value) {
    bool within = false;
    double words = 0;
    for (const char c : value) {
      const bool blank = absl::ascii_isspace(static_cast<unsigned char>(c));
      words += !blank && !within;
      within = !blank;
    }
    return words;
  }

  // A single wild number does not make a column skewed.
  void DescribeShape() {
    std::sort(all_.begin(), all_.end());
    sample_.least = all_.front();
    const size_t cut = all_.size() / 100;
    const float low = all_[cut], high = all_[all_.size() - 1 - cut];
    double mean = 0, squares = 0, cubes = 0;
    for (const float number : all_) mean += std::clamp(number, low, high);
    mean /= static_cast<double>(all_.size());
    for (const float number : all_) {
      const double distance = std::clamp(number, low, high) - mean;
      squares += distance * distance;
      cubes += distance * distance * distance;
    }
    if (!(squares > 0)) return;
    sample_.skewness = std::sqrt(static_cast<double>(all_.size())) * cubes / std::pow(squares, 1.5);
  }

  bool Full() const { return numbers_.size() + texts_.size() >= ColumnSample::kMostDistinct; }

  ColumnSample& sample_;
  double squares_ = 0;      // of the distances from the mean
  int64_t marks_ = 0;       // values that are missing if the column is numeric
  std::string mark_;        // the first of them
  double words_ = 0;        // of all texts
  std::vector<float> all_;  // numbers
  std::unordered_set<float> numbers_;
  std::unordered_set<std::string> texts_;
};

}  // namespace

absl::StatusOr<ColumnSample> SampleColumn(absl::string_view bytes, const std::string& name,
                                          const std::string& column) {
  std::vector<std::string> repeated;
  ASSIGN_OR_RETURN(const std::vector<std::string> header, ReadCsvHeader(bytes, name, &repeated));
  const auto at = static_cast<size_t>(absl::c_find(header, column) - header.begin());
  if (at == header.size()) {
    return absl::NotFoundError(absl::StrCat(name, " has no column '", column, "'"));
  }
  ColumnSample sample;
  Collector collector(sample);
  const char delimiter = DelimiterOf(bytes, name);
  const auto points = WithDecimalPoints(bytes, delimiter);
  CsvReader reader(points ? absl::string_view(points->bytes) : bytes, name, delimiter);
  RETURN_IF_ERROR(reader.Next().status());
  while (true) {
    const absl::StatusOr<bool> next = reader.Next();
    if (!next.ok() || !*next || reader.fields().size() != header.size()) break;
    collector.Add(reader.fields()[at]);
    sample.bytes_per_row =
        static_cast<double>(reader.position()) / static_cast<double>(sample.rows);
  }
  collector.Finish();
  return sample;
}

bool LooksLikeCounts(const ColumnSample& sample) {
  return sample.whole && !sample.negative && sample.mean > 0 &&
         static_cast<double>(sample.zeros) >= kZeroShare * static_cast<double>(sample.numbers) &&
         sample.variance >= kLeastScatter * sample.mean;
}

bool HoldsTexts(const ColumnSample& sample, double words) {
  const int64_t texts = sample.values - sample.numbers;
  const bool full = sample.distinct == ColumnSample::kMostDistinct;
  const bool differ = full || 2 * static_cast<int64_t>(sample.distinct) > sample.values;
  const bool mostly =
      static_cast<double>(texts) >= kNumericShare * static_cast<double>(sample.values);
  return texts > 0 && mostly && differ && sample.words >= words;
}

bool IsSkewed(const ColumnSample& sample) { return std::fabs(sample.skewness) >= kLeastSkewness; }

absl::StatusOr<TypeChoice> TypeOfTarget(const std::string& target, const ColumnSample& sample) {
  if (sample.values == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("is missing, and the target '", Printable(target),
                     "' has no value in the first rows that would tell it"));
  }
  const std::string subject = absl::StrCat("the target '", Printable(target), "' has ");
  const auto values = static_cast<double>(sample.values);
  if (static_cast<double>(sample.numbers) < kNumericShare * values) {
    return TypeChoice{
        "classification",
        absl::StrCat(subject, "values that are no numbers, such as '", sample.text, "'")};
  }
  const bool few = sample.distinct <= kMostClasses && sample.whole &&
                   sample.values >= kRowsPerClass * static_cast<int64_t>(sample.distinct);
  if (sample.distinct == 2 || (few && sample.distinct > 1)) {
    return TypeChoice{"classification",
                      absl::StrCat(subject, sample.distinct, " different values")};
  }
  const bool more = sample.distinct == ColumnSample::kMostDistinct;
  return TypeChoice{"regression", absl::StrCat(subject, more ? "more than " : "", sample.distinct,
                                               " different numbers")};
}

}  // namespace traind
