#include "server/search/importance.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

namespace traind {
namespace {

struct Point {
  double place = 0, rank = 0;
};

// Equal losses have the mean of their ranks.
void TakeRanks(std::vector<std::pair<double, Point*>>& by_loss) {
  std::sort(by_loss.begin(), by_loss.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  for (size_t i = 0; i < by_loss.size();) {
    size_t end = i;
    while (end < by_loss.size() && by_loss[end].first == by_loss[i].first) ++end;
    for (size_t k = i; k < end; ++k) {
      by_loss[k].second->rank = static_cast<double>(i + end - 1) / 2;
    }
    i = end;
  }
}

// The trials with a value of this parameter, with their ranks among each other.
std::vector<Point> PointsOf(const Parameter& parameter, const std::vector<Tried>& tried) {
  std::vector<std::pair<double, double>> known;  // loss and place
  for (const Tried& trial : tried) {
    if (trial.running || !std::isfinite(trial.loss)) continue;
    for (const auto& [path, value] : trial.settings) {
      if (path != parameter.path) continue;
      const std::optional<double> place = PlaceOf(parameter.range, value);
      if (place) known.emplace_back(trial.loss, *place);
    }
  }
  std::vector<Point> points(known.size());
  std::vector<std::pair<double, Point*>> by_loss;
  for (size_t i = 0; i < known.size(); ++i) {
    points[i].place = known[i].second;
    by_loss.emplace_back(known[i].first, &points[i]);
  }
  TakeRanks(by_loss);
  return points;
}

// Ranks by group: a choice each, or bins of equally many trials. Equal places share a bin.
std::vector<std::vector<double>> GroupsOf(const Parameter& parameter, std::vector<Point> points) {
  std::map<double, std::vector<double>> groups;
  std::sort(points.begin(), points.end(),
            [](const Point& a, const Point& b) { return a.place < b.place; });
  const auto bins = std::max<size_t>(2, static_cast<size_t>(std::sqrt(points.size())));
  size_t bin = 0;
  for (size_t i = 0; i < points.size(); ++i) {
    const bool same = i > 0 && points[i].place == points[i - 1].place;
    if (!same) bin = i * bins / points.size();
    const bool choice = parameter.range.kind == Range::kChoice;
    groups[choice ? points[i].place : static_cast<double>(bin)].push_back(points[i].rank);
  }
  std::vector<std::vector<double>> list;
  for (auto& [key, ranks] : groups) list.push_back(std::move(ranks));
  return list;
}

double MeanOf(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

// The share that chance alone would explain is taken off.
double ShareBetween(const std::vector<std::vector<double>>& groups) {
  std::vector<double> all;
  for (const auto& group : groups) all.insert(all.end(), group.begin(), group.end());
  const double mean = MeanOf(all);
  double within = 0, total = 0;
  for (const auto& group : groups) {
    const double of_group = MeanOf(group);
    for (const double rank : group) {
      within += (rank - of_group) * (rank - of_group);
      total += (rank - mean) * (rank - mean);
    }
  }
  const auto n = static_cast<double>(all.size()), k = static_cast<double>(groups.size());
  if (total == 0 || k < 2 || n <= k) return 0;
  return std::clamp(1 - within * (n - 1) / (total * (n - k)), 0.0, 1.0);
}

}  // namespace

std::vector<std::optional<double>> Importances(const Space& space,
                                               const std::vector<Tried>& tried) {
  std::vector<std::optional<double>> shares;
  for (const Parameter& parameter : space) {
    std::vector<Point> points = PointsOf(parameter, tried);
    if (points.size() < kLeastTrials) {
      shares.emplace_back();
    } else {
      shares.emplace_back(ShareBetween(GroupsOf(parameter, std::move(points))));
    }
  }
  return shares;
}

}  // namespace traind
