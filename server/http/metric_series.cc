#include "server/http/metric_series.h"

#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_split.h>

#include <algorithm>
#include <utility>

#include "common/base/json_text.h"

namespace traind {
namespace {

constexpr size_t kFewestPoints = 4;

absl::Status WrongNumber(const std::string& key, absl::string_view text) {
  return absl::InvalidArgumentError(
      absl::StrCat(key, ": '", text, "' is not a whole number from 0 on"));
}

template <typename Text>
void AppendColumn(absl::string_view key, const std::vector<SeriesPoint>& points,
                  const std::vector<size_t>& kept, const Text& text, std::string* json) {
  absl::StrAppend(json, ",\"", key, "\":[");
  for (const size_t i : kept) {
    if (i != kept.front()) *json += ',';
    absl::StrAppend(json, text(points[i]));
  }
  *json += ']';
}

}  // namespace

absl::Status ReadSeriesFilter(const HttpRequest& request, SeriesFilter* filter) {
  for (const auto& [key, value] : request.query) {
    if (key == "names") {
      for (const absl::string_view name : absl::StrSplit(value, ',', absl::SkipEmpty())) {
        filter->names.emplace(name);
      }
    } else if (key == "folds") {
      for (const absl::string_view text : absl::StrSplit(value, ',', absl::SkipEmpty())) {
        int fold = 0;
        if (!absl::SimpleAtoi(text, &fold) || fold < 0) return WrongNumber(key, text);
        filter->folds.insert(fold);
      }
    } else if (key == "max_points") {
      if (!absl::SimpleAtoi(value, &filter->max_points)) return WrongNumber(key, value);
      if (filter->max_points != 0 && filter->max_points < kFewestPoints) {
        return absl::InvalidArgumentError(
            absl::StrCat("max_points: '", value, "' is below ", kFewestPoints, "; 0 asks for all"));
      }
    } else if (key == "after_sequence") {
      if (!absl::SimpleAtoi(value, &filter->after_sequence) || filter->after_sequence < 0) {
        return WrongNumber(key, value);
      }
    } else if (key == "columns") {
      if (!absl::SimpleAtob(value, &filter->columns)) {
        return absl::InvalidArgumentError(
            absl::StrCat("columns: '", value, "' is neither true nor false"));
      }
    } else {
      return absl::InvalidArgumentError(
          absl::StrCat(key,
                       ": not known; the query may have names, folds, max_points, "
                       "after_sequence and columns"));
    }
  }
  return absl::OkStatus();
}

void MetricSeries::Add(SeriesPoint point) {
  last_sequence_ = std::max(last_sequence_, point.sequence);
  if (!filter_.names.empty() && filter_.names.count(point.name) == 0) return;
  if (!filter_.folds.empty() && filter_.folds.count(point.fold) == 0) return;
  series_[{point.name, point.fold, point.attempt}].push_back(std::move(point));
}

std::vector<size_t> ThinnedIndices(const std::vector<double>& values, size_t most) {
  std::vector<size_t> kept;
  if (most == 0 || values.size() <= most) {
    for (size_t i = 0; i < values.size(); ++i) kept.push_back(i);
    return kept;
  }
  const size_t parts = std::max<size_t>(1, (most - 2) / 2);
  const size_t inner = values.size() - 2;
  kept.push_back(0);
  for (size_t part = 0; part < parts; ++part) {
    const size_t begin = 1 + part * inner / parts;
    const size_t end = 1 + (part + 1) * inner / parts;
    if (begin == end) continue;
    const auto [least, largest] =
        std::minmax_element(values.begin() + static_cast<std::ptrdiff_t>(begin),
                            values.begin() + static_cast<std::ptrdiff_t>(end));
    const auto [first, second] = std::minmax(least, largest);
    kept.push_back(static_cast<size_t>(first - values.begin()));
    if (first != second) kept.push_back(static_cast<size_t>(second - values.begin()));
  }
  kept.push_back(values.size() - 1);
  return kept;
}

std::vector<size_t> MetricSeries::KeptOf(const std::vector<SeriesPoint>& points) const {
  std::vector<double> values;
  values.reserve(points.size());
  for (const SeriesPoint& point : points) values.push_back(point.value);
  return ThinnedIndices(values, filter_.max_points);
}

std::vector<SeriesPoint> MetricSeries::Kept() const {
  std::vector<SeriesPoint> all;
  for (const auto& [key, points] : series_) {
    for (const size_t i : KeptOf(points)) all.push_back(points[i]);
  }
  std::sort(all.begin(), all.end(),
            [](const SeriesPoint& a, const SeriesPoint& b) { return a.sequence < b.sequence; });
  return all;
}

std::string MetricSeries::ColumnsJson() const {
  std::string json = "{\"series\":[";
  for (const auto& [key, points] : series_) {
    const std::vector<size_t> kept = KeptOf(points);
    const SeriesPoint& first = points.front();
    absl::StrAppend(&json, json.back() == '[' ? "" : ",", "{\"name\":", JsonString(first.name),
                    ",\"fold\":", first.fold, ",\"attempt\":", first.attempt,
                    ",\"points\":", points.size());
    const auto column = [&, &points = points](absl::string_view name, const auto& text) {
      AppendColumn(name, points, kept, text, &json);
    };
    column("sequence", [](const SeriesPoint& p) { return absl::StrCat(p.sequence); });
    column("step", [](const SeriesPoint& p) { return absl::StrCat(p.step); });
    column("epoch", [](const SeriesPoint& p) { return JsonNumber(p.epoch); });
    column("at_s", [](const SeriesPoint& p) {
      return JsonNumber(static_cast<double>(absl::ToUnixMillis(p.at)) / 1000);
    });
    column("value", [](const SeriesPoint& p) { return JsonNumber(p.value); });
    json += '}';
  }
  absl::StrAppend(&json, "],\"last_sequence\":", last_sequence_, "}");
  return json;
}

}  // namespace traind
