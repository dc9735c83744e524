#include "worker/train/signals.h"

#include <absl/strings/str_format.h>

#include <algorithm>

namespace traind {
namespace {

double Share(double part, double whole) { return whole > 0 ? std::min(1.0, part / whole) : 0; }

// Advice, by where the time goes.
std::string Advice(const UsageWindow& w, double busy_s) {
  const double gather = Share(w.gather_s, busy_s), exchange = Share(w.exchange_s, busy_s);
  const double cpu = Share(w.cpu_s, busy_s);
  if (exchange >= gather && exchange > 0.15) {
    return absl::StrFormat(
        "%.0f %% of the time ranks wait for each other: fewer slots, or a larger batch",
        exchange * 100);
  }
  if (gather > 0.15) {
    return absl::StrFormat("%.0f %% of the time goes into putting batches together: a larger batch",
                           gather * 100);
  }
  return absl::StrFormat(
      "the process had a core for %.0f %% of the time: other programs use this machine, or it has "
      "more ranks than cores",
      cpu * 100);
}

}  // namespace

double Utilisation(const UsageWindow& w, int threads, bool gpu) {
  const double busy_s = w.wall_s - w.pause_s;
  if (gpu || busy_s <= 0) return -1;
  const double computing = Share(w.cpu_s, busy_s * threads);
  return std::max(0.0, computing - Share(w.gather_s + w.exchange_s, busy_s));
}

std::vector<std::string> UsageWatch::Add(const UsageWindow& w) {
  if (done_) return {};
  sum_.wall_s += w.wall_s;
  sum_.cpu_s += w.cpu_s;
  sum_.gather_s += w.gather_s;
  sum_.exchange_s += w.exchange_s;
  sum_.pause_s += w.pause_s;
  sum_.micro_batches += w.micro_batches;
  const double busy_s = sum_.wall_s - sum_.pause_s;
  if (busy_s < kLookAfterS) return {};
  done_ = true;
  std::vector<std::string> warnings;
  const double used = Utilisation(sum_, threads_, gpu_);
  if (used >= 0 && used < kGood) {
    warnings.push_back(absl::StrFormat("utilisation is %.0f %% (%s): %s", used * 100,
                                       used < kPoor ? "poor" : "training waits",
                                       Advice(sum_, busy_s)));
  }
  const double per_minute = static_cast<double>(sum_.micro_batches) * 60 / busy_s;
  if (plain_rows_ && per_minute < kLeastBatchesPerMinute) {
    warnings.push_back(
        absl::StrFormat("%.0f batches a minute, which is below %.0f: a smaller model or batch, "
                        "more slots, or a GPU "
                        "would help",
                        per_minute, kLeastBatchesPerMinute));
  }
  return warnings;
}

}  // namespace traind
