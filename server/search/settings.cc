#include "server/search/settings.h"

#include <algorithm>
#include <numeric>
#include <string>

namespace traind {

Draw DrawOf(uint64_t seed, int trial, int attempt) {
  Draw mix(seed);
  const auto of_seed = static_cast<uint64_t>(mix.Unit() * 0x1p53);
  constexpr uint64_t kTrial = 0xd1b54a32d192ed03, kAttempt = 0x8cb92ba72f3d8dd7;
  return Draw(of_seed ^ (kTrial * static_cast<uint64_t>(trial + 1)) ^
              (kAttempt * static_cast<uint64_t>(attempt)));
}

Settings DrawRandom(const Space& space, Draw& draw) {
  Settings settings;
  for (const Parameter& parameter : space) {
    const Axis axis = AxisOf(parameter.range);
    const double place =
        axis.choices > 0 ? draw.Int(0, axis.choices - 1) : draw.Between(axis.low, axis.high);
    settings.emplace_back(parameter.path, ValueAt(parameter.range, place));
  }
  return settings;
}

std::vector<Settings> GridPoints(const Space& space, uint64_t seed, int most) {
  std::vector<int> order(static_cast<size_t>(PointCount(space)));
  std::iota(order.begin(), order.end(), 0);
  Draw draw = DrawOf(seed, 0, 0);
  for (size_t i = order.size(); i > 1; --i) {
    std::swap(order[i - 1], order[static_cast<size_t>(draw.Int(0, static_cast<int>(i) - 1))]);
  }
  if (order.size() > static_cast<size_t>(most)) order.resize(static_cast<size_t>(most));
  std::vector<Settings> points;
  for (int index : order) {
    Settings& point = points.emplace_back();
    for (const Parameter& parameter : space) {
      const int values = static_cast<int>(ValueCount(parameter.range));
      point.emplace_back(parameter.path, ValueOf(parameter.range, index % values));
      index /= values;
    }
  }
  return points;
}

}  // namespace traind
