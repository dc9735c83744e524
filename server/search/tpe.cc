#include "server/search/tpe.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <utility>

namespace traind {
namespace {

constexpr int kCandidates = 24;
constexpr double kGoodShare = 0.1;
constexpr size_t kMostGood = 25;
constexpr int kFullWeights = 25;  // of the newest trials; older ones count less
constexpr double kMostKernels = 100;
constexpr double kPriorWeight = 1;

double NormalCdf(double z) { return 0.5 * std::erfc(-z * M_SQRT1_2); }

// Box and Muller's transform.
double DrawNormal(Draw& draw) {
  const double radius = std::sqrt(-2 * std::log(1 - draw.Unit()));
  return radius * std::cos(2 * M_PI * draw.Unit());
}

// Weights of n observations, the oldest first.
std::vector<double> Weights(size_t n) {
  std::vector<double> weights(n, 1.0);
  if (n < kFullWeights) return weights;
  const size_t ramp = n - kFullWeights;
  for (size_t i = 0; i < ramp; ++i) {
    const double least = 1.0 / static_cast<double>(n);
    weights[i] = ramp == 1
                     ? least
                     : least + (1 - least) * static_cast<double>(i) / static_cast<double>(ramp - 1);
  }
  return weights;
}

// One parameter of all kernels. The last kernel is that of the whole range.
class Dimension {
 public:
  Dimension(const Axis& axis, std::vector<double> places)
      : axis_(axis), places_(std::move(places)) {
    if (axis_.choices == 0) FindWidths();
  }

  double Sample(size_t kernel, Draw& draw) const {
    if (axis_.choices > 0) return SampleChoice(kernel, draw);
    double place = places_[kernel];
    for (int i = 0; i < kMostTries; ++i) {
      place = places_[kernel] + widths_[kernel] * DrawNormal(draw);
      if (place >= axis_.low && place <= axis_.high) break;
    }
    place = std::clamp(place, axis_.low, axis_.high);
    if (axis_.step == 0) return place;
    const double first = axis_.low + axis_.step / 2, last = axis_.high - axis_.step / 2;
    return std::clamp(first + std::round((place - first) / axis_.step) * axis_.step, first, last);
  }

  // A normal density, cut off at the ends of the range; of steps the mass around the place.
  double LogAt(size_t kernel, double place) const {
    if (axis_.choices > 0) return std::log(ChoiceShare(kernel, static_cast<int>(place)));
    const double mean = places_[kernel], width = widths_[kernel];
    const auto below = [&](double x) { return NormalCdf((x - mean) / width); };
    const double mass = below(axis_.high) - below(axis_.low);
    if (axis_.step > 0) {
      const double around = below(place + axis_.step / 2) - below(place - axis_.step / 2);
      return std::log(std::max(around, kLeast) / mass);
    }
    const double z = (place - mean) / width;
    return -z * z / 2 - std::log(std::sqrt(2 * M_PI) * width * mass);
  }

 private:
  // Each kernel has at least a third of its mass within the range, so few tries are enough.
  static constexpr int kMostTries = 100;
  static constexpr double kLeast = 1e-300;

  // The larger gap to its neighbours; the first and the last one have only one.
  void FindWidths() {
    const double range = axis_.high - axis_.low;
    const size_t n = places_.size();
    std::vector<size_t> order(n);
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [this](size_t a, size_t b) { return places_[a] < places_[b]; });
    widths_.assign(n + 1, range);
    const double least = range / std::min(kMostKernels, static_cast<double>(n) + 2);
    for (size_t i = 0; i < n; ++i) {
      double below = i == 0 ? 0 : places_[order[i]] - places_[order[i - 1]];
      double above = i + 1 == n ? 0 : places_[order[i + 1]] - places_[order[i]];
      if (n == 1) {
        below = places_[0] - axis_.low;
        above = axis_.high - places_[0];
      }
      widths_[order[i]] = std::clamp(std::max(below, above), least, range);
    }
    places_.push_back((axis_.low + axis_.high) / 2);
  }

  // A kernel of a choice: its own value, and a little of every other one.
  double ChoiceShare(size_t kernel, int choice) const {
    const double prior = kPriorWeight / static_cast<double>(places_.size() + 1);
    const bool own = kernel < places_.size() && static_cast<int>(places_[kernel]) == choice;
    const double sum = axis_.choices * prior + (kernel < places_.size() ? 1 : 0);
    return (prior + (own ? 1 : 0)) / sum;
  }
  double SampleChoice(size_t kernel, Draw& draw) const {
    double left = draw.Unit();
    for (int choice = 0; choice + 1 < axis_.choices; ++choice) {
      left -= ChoiceShare(kernel, choice);
      if (left < 0) return choice;
    }
    return axis_.choices - 1;
  }

  const Axis axis_;
  std::vector<double> places_, widths_;
};

using Point = std::vector<double>;  // a place for each parameter

// A mixture of kernels: one for each point, and one for the whole space.
class Density {
 public:
  Density(const Space& space, const std::vector<Point>& points) : weights_(Weights(points.size())) {
    weights_.push_back(kPriorWeight);
    const double sum = std::accumulate(weights_.begin(), weights_.end(), 0.0);
    for (double& weight : weights_) weight /= sum;
    for (size_t d = 0; d < space.size(); ++d) {
      std::vector<double> places;
      for (const Point& point : points) places.push_back(point[d]);
      dimensions_.emplace_back(AxisOf(space[d].range), std::move(places));
    }
  }

  Point Sample(Draw& draw) const {
    double left = draw.Unit();
    size_t kernel = 0;
    for (; kernel + 1 < weights_.size(); ++kernel) {
      left -= weights_[kernel];
      if (left < 0) break;
    }
    Point point;
    for (const Dimension& dimension : dimensions_) point.push_back(dimension.Sample(kernel, draw));
    return point;
  }

  double LogAt(const Point& point) const {
    std::vector<double> logs;
    for (size_t kernel = 0; kernel < weights_.size(); ++kernel) {
      double log = std::log(weights_[kernel]);
      for (size_t d = 0; d < point.size(); ++d) log += dimensions_[d].LogAt(kernel, point[d]);
      logs.push_back(log);
    }
    const double largest = *std::max_element(logs.begin(), logs.end());
    double sum = 0;
    for (const double log : logs) sum += std::exp(log - largest);
    return largest + std::log(sum);
  }

 private:
  std::vector<double> weights_;
  std::vector<Dimension> dimensions_;
};

// None: the settings lack a parameter.
std::optional<Point> PointOf(const Space& space, const Settings& settings) {
  Point point;
  for (const Parameter& parameter : space) {
    for (const auto& [path, value] : settings) {
      if (path != parameter.path) continue;
      const std::optional<double> place = PlaceOf(parameter.range, value);
      if (place) point.push_back(*place);
    }
  }
  if (point.size() != space.size()) return std::nullopt;
  return point;
}

struct Seen {
  Point point;
  double loss;
  bool running, good;
};

// Marks the best of those that have ended.
void MarkGood(std::vector<Seen>& seen) {
  std::vector<Seen*> ended;
  for (Seen& one : seen) {
    if (!one.running) ended.push_back(&one);
  }
  std::stable_sort(ended.begin(), ended.end(),
                   [](const Seen* a, const Seen* b) { return a->loss < b->loss; });
  const auto share = static_cast<size_t>(std::ceil(kGoodShare * static_cast<double>(ended.size())));
  for (size_t i = 0; i < std::min(share, kMostGood); ++i) ended[i]->good = true;
}

}  // namespace

Settings DrawByTpe(const Space& space, const std::vector<Tried>& tried, Draw& draw) {
  std::vector<Seen> seen;
  for (const Tried& trial : tried) {
    const std::optional<Point> point = PointOf(space, trial.settings);
    if (point) seen.push_back({*point, trial.loss, trial.running, false});
  }
  MarkGood(seen);
  std::vector<Point> good, others;
  for (const Seen& one : seen) (one.good ? good : others).push_back(one.point);
  const Density of_good(space, good), of_others(space, others);
  Point best;
  double best_ratio = -HUGE_VAL;
  for (int i = 0; i < kCandidates; ++i) {
    Point point = of_good.Sample(draw);
    const double ratio = of_good.LogAt(point) - of_others.LogAt(point);
    if (!best.empty() && ratio <= best_ratio) continue;
    best = std::move(point);
    best_ratio = ratio;
  }
  Settings settings;
  for (size_t d = 0; d < space.size(); ++d) {
    settings.emplace_back(space[d].path, ValueAt(space[d].range, best[d]));
  }
  return settings;
}

}  // namespace traind
