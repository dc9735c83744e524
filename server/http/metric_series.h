// Metrics of a Job, thinned for a chart.
#pragma once

#include <absl/status/status.h>
#include <absl/time/time.h>

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "server/http/message.h"

namespace traind {

struct SeriesFilter {
  std::set<std::string> names;  // empty: all
  std::set<int> folds;          // empty: all
  size_t max_points = 0;        // of each series; 0: all
  int64_t after_sequence = 0;   // only later points
  bool columns = false;         // a list for each field instead of an object for each point
};

// From the query: names=a,b folds=0,1 max_points=500 after_sequence=7 columns=true. InvalidArgument
// names what is wrong.
absl::Status ReadSeriesFilter(const HttpRequest& request, SeriesFilter* filter);

struct SeriesPoint {
  int64_t sequence = 0;
  std::string name;
  int fold = 0;
  int64_t attempt = 0;
  int64_t step = 0;
  double epoch = 0;
  double value = 0;
  absl::Time at;
};

// Collects points by name, fold and Attempt.
// Threads: confined to one.
class MetricSeries {
 public:
  explicit MetricSeries(SeriesFilter filter) : filter_(std::move(filter)) {}

  void Add(SeriesPoint point);
  // The points that stay, oldest first.
  std::vector<SeriesPoint> Kept() const;
  // {"series":[{"name","fold","attempt","points","sequence":[],"step":[],"epoch":[],"at_s":[],
  // "value":[]}],"last_sequence":7}. `points` counts them before thinning.
  std::string ColumnsJson() const;

 private:
  std::vector<size_t> KeptOf(const std::vector<SeriesPoint>& points) const;

  const SeriesFilter filter_;
  std::map<std::tuple<std::string, int, int64_t>, std::vector<SeriesPoint>> series_;
  int64_t last_sequence_ = 0;
};

// The indices that stay of `values`, in order: the first, the last, and the least and the largest
// of each of equal parts between, at most `most` in all. most 0: all stay.
std::vector<size_t> ThinnedIndices(const std::vector<double>& values, size_t most);

}  // namespace traind
