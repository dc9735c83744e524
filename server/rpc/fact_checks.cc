#include "server/rpc/fact_checks.h"

#include <absl/strings/match.h>
#include <absl/strings/str_split.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

namespace traind {
namespace {

// Columns whose importance is stored.
constexpr size_t kMostColumns = 1000;

void CheckMeasurement(double& seconds) {
  if (!std::isfinite(seconds) || seconds < 0) seconds = 0;
}

// Paths of a Worker end in file operations here: they stay below the folder that they are
// relative to.
bool StaysInside(const std::string& path) {
  if (absl::StartsWith(path, "/")) return false;
  const std::vector<absl::string_view> parts = absl::StrSplit(path, '/');
  return std::find(parts.begin(), parts.end(), "..") == parts.end();
}

// Each brings its figures into their ranges, and returns whether its paths stay inside.
bool Check(facts::TableReady& fact) { return StaysInside(fact.table); }

bool Check(facts::Probe& fact) {
  CheckMeasurement(fact.step_s);
  CheckMeasurement(fact.step_p90_s);
  CheckMeasurement(fact.evaluate_s);
  CheckMeasurement(fact.predict_s);
  return true;
}

bool Check(facts::Epoch& fact) {
  CheckMeasurement(fact.epoch_s);
  CheckMeasurement(fact.evaluate_s);
  if (!(fact.row_share > 0 && fact.row_share < 1)) fact.row_share = 1;
  return true;
}

bool Check(facts::CheckpointSaved& fact) { return StaysInside(fact.manifest); }

bool Check(facts::FoldSaved& fact) {
  CheckMeasurement(fact.best_epoch);
  CheckMeasurement(fact.predict_s);
  return StaysInside(fact.oof) && StaysInside(fact.test);
}

bool Check(facts::Ended& fact) {
  if (fact.reason == AttemptEndReason::kNone) fact.reason = AttemptEndReason::kInternal;
  return true;
}

bool Check(facts::Resources& fact) {
  CheckMeasurement(fact.seconds);
  CheckMeasurement(fact.epochs);
  CheckMeasurement(fact.cpu_s);
  if (!std::isfinite(fact.utilisation) || fact.utilisation < 0) fact.utilisation = -1;
  if (!std::isfinite(fact.energy_joules) || fact.energy_joules < 0) fact.energy_joules = -1;
  fact.peak_memory_bytes = std::max<int64_t>(0, fact.peak_memory_bytes);
  fact.peak_device_bytes = std::max<int64_t>(0, fact.peak_device_bytes);
  return true;
}

bool Check(facts::Transfers& fact) {
  fact.fetched_bytes = std::max<int64_t>(0, fact.fetched_bytes);
  fact.sent_bytes = std::max<int64_t>(0, fact.sent_bytes);
  CheckMeasurement(fact.fetch_s);
  CheckMeasurement(fact.send_s);
  return true;
}

bool Check(facts::Importance& fact) {
  const size_t count = std::min({fact.columns.size(), fact.drops.size(), kMostColumns});
  fact.columns.resize(count);
  fact.drops.resize(count);
  return true;
}

// Nothing of these is used in a computation or as a path.
bool Check(facts::FloorReady&) { return true; }
bool Check(facts::Started&) { return true; }
bool Check(facts::Progress&) { return true; }
bool Check(facts::Decision&) { return true; }

}  // namespace

std::optional<facts::Fact> CheckedFact(facts::Fact fact) {
  if (!std::visit([](auto& f) { return Check(f); }, fact)) return std::nullopt;
  return fact;
}

v1::DeviceFigures CheckedFigures(v1::DeviceFigures figures) {
  const auto good = [](double value) { return std::isfinite(value) && value >= 0; };
  if (!good(figures.utilisation()) || figures.utilisation() > 1) figures.clear_utilisation();
  if (figures.memory_bytes() < 0) figures.clear_memory_bytes();
  if (!good(figures.power_watts())) figures.clear_power_watts();
  if (!good(figures.temperature_celsius())) figures.clear_temperature_celsius();
  if (!good(figures.energy_joules())) figures.clear_energy_joules();
  return figures;
}

}  // namespace traind
