#include "server/search/tpe.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

namespace traind {
namespace {

constexpr int kCandidates = 24;
constexpr double kGoodShare = 0.1;
constexpr int kMostGood = 25;
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

// A mixture over one axis: a kernel for each observation, and one for the time before.
class Density {
 public:
  Density(const Axis& axis, const std::vector<double>& places) : axis_(axis), places_(places) {
    weights_ = Weights(places.size());
    weights_.push_back(kPriorWeight);
    const double sum = std::accumulate(weights_.begin(), weights_.end(), 0.0);
    for (double& weight : weights_) weight /= sum;
    if (axis_.choices == 0) MakeKernels();
  }

  double Sample(Draw& draw) const {
    const size_t kernel = SampleKernel(draw);
    if (axis_.choices > 0) return SampleChoice(kernel, draw);
    const double mean = places_[kernel];
    double place = mean;
    for (int i = 0; i < kMostTries; ++i) {
      place = mean + widths_[kernel] * DrawNormal(draw);
      if (place >= axis_.low && place <= axis_.high) break;
    }
    place = std::clamp(place, axis_.low, axis_.high);
    if (axis_.step == 0) return place;
    const double first = axis_.low + axis_.step / 2, last = axis_.high - axis_.step / 2;
    return std::clamp(first + std::round((place - first) / axis_.step) * axis_.step, first, last);
  }

  double LogAt(double place) const {
    double sum = 0;
    for (size_t i = 0; i < weights_.size(); ++i) sum += weights_[i] * KernelAt(i, place);
    return std::log(std::max(sum, 1e-300));
  }

 private:
  // Each kernel has at least a third of its mass within the range, so few tries are enough.
  static constexpr int kMostTries = 100;

  void MakeKernels() {
    const double range = axis_.high - axis_.low, middle = (axis_.low + axis_.high) / 2;
    const size_t n = places_.size();
    places_.push_back(middle);
    std::vector<size_t> order(n + 1);
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [this](size_t a, size_t b) { return places_[a] < places_[b]; });
    widths_.assign(n + 1, range);
    const double least = range / std::min(kMostKernels, static_cast<double>(n) + 2);
    for (size_t i = 0; n > 0 && i <= n; ++i) {
      const double below = i == 0 ? 0 : places_[order[i]] - places_[order[i - 1]];
      const double above = i == n ? 0 : places_[order[i + 1]] - places_[order[i]];
      widths_[order[i]] = std::clamp(std::max(below, above), least, range);
    }
    widths_[n] = range;
  }

  size_t SampleKernel(Draw& draw) const {
    double left = draw.Unit();
    for (size_t i = 0; i + 1 < weights_.size(); ++i) {
      left -= weights_[i];
      if (left < 0) return i;
    }
    return weights_.size() - 1;
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

  // A normal density, cut off at the ends of the range; of steps the mass around the place.
  double KernelAt(size_t kernel, double place) const {
    if (axis_.choices > 0) return ChoiceShare(kernel, static_cast<int>(place));
    const double mean = places_[kernel], width = widths_[kernel];
    const auto below = [&](double x) { return NormalCdf((x - mean) / width); };
    const double mass = below(axis_.high) - below(axis_.low);
    if (axis_.step > 0) {
      return (below(place + axis_.step / 2) - below(place - axis_.step / 2)) / mass;
    }
    const double z = (place - mean) / width;
    return std::exp(-z * z / 2) / (std::sqrt(2 * M_PI) * width * mass);
  }

  const Axis axis_;
  std::vector<double> places_, widths_, weights_;
};

// The places of one parameter in trials that have a value for it.
std::vector<double> PlacesOf(const Parameter& parameter, const std::vector<const Tried*>& trials) {
  std::vector<double> places;
  for (const Tried* trial : trials) {
    for (const auto& [path, value] : trial->settings) {
      if (path != parameter.path) continue;
      const std::optional<double> place = PlaceOf(parameter.range, value);
      if (place) places.push_back(*place);
    }
  }
  return places;
}

}  // namespace

Settings DrawByTpe(const Space& space, const std::vector<Tried>& tried, Draw& draw) {
  std::vector<const Tried*> ended;
  for (const Tried& trial : tried) {
    if (!trial.running) ended.push_back(&trial);
  }
  const auto count = static_cast<double>(ended.size());
  const size_t good_count =
      std::min<size_t>(static_cast<size_t>(std::ceil(kGoodShare * count)), kMostGood);
  std::stable_sort(ended.begin(), ended.end(),
                   [](const Tried* a, const Tried* b) { return a->loss < b->loss; });
  ended.resize(std::min(ended.size(), good_count));
  std::vector<const Tried*> good, others;  // in the order of trials
  for (const Tried& trial : tried) {
    const bool is_good = std::find(ended.begin(), ended.end(), &trial) != ended.end();
    (is_good ? good : others).push_back(&trial);
  }
  Settings settings;
  for (const Parameter& parameter : space) {
    const Axis axis = AxisOf(parameter.range);
    const Density of_good(axis, PlacesOf(parameter, good));
    const Density of_others(axis, PlacesOf(parameter, others));
    double best = 0, best_ratio = -HUGE_VAL;
    for (int i = 0; i < kCandidates; ++i) {
      const double place = of_good.Sample(draw);
      const double ratio = of_good.LogAt(place) - of_others.LogAt(place);
      if (ratio <= best_ratio) continue;
      best = place;
      best_ratio = ratio;
    }
    settings.emplace_back(parameter.path, ValueAt(parameter.range, best));
  }
  return settings;
}

}  // namespace traind
