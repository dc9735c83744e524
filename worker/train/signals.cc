#include "worker/train/signals.h"

#include <absl/strings/str_format.h>

#include <algorithm>
#include <utility>

#include "common/facts/usage.h"

namespace traind {
namespace {

double Share(double part, double whole) { return whole > 0 ? std::min(1.0, part / whole) : 0; }

}  // namespace

double Utilisation(const UsageWindow& w, int threads, bool gpu) {
  const double busy_s = w.wall_s - w.pause_s;
  if (gpu || busy_s <= 0) return -1;
  const double computing = Share(w.cpu_s, busy_s * threads);
  return std::max(0.0, computing - Share(w.gather_s + w.exchange_s, busy_s));
}

std::optional<LoaderWatch::Change> LoaderWatch::Add(const UsageWindow& w, int threads) {
  busy_s_ += w.wall_s - w.pause_s;
  gather_s_ += w.gather_s;
  if (busy_s_ < kLookEveryS) return std::nullopt;
  const double wait = Share(std::exchange(gather_s_, 0), std::exchange(busy_s_, 0));
  const int wanted = std::min(2 * threads, most_);
  if (wait <= kMostWait || wanted <= threads) return std::nullopt;
  return Change{wanted, wait};
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
  Usage usage;
  usage.utilisation = Utilisation(sum_, threads_, gpu_);
  usage.data_wait = Share(sum_.gather_s, busy_s);
  usage.exchange = Share(sum_.exchange_s, busy_s);
  usage.core = Share(sum_.cpu_s, busy_s);
  usage.batch = batch_;
  if (std::string advice = UsageAdvice(usage); !advice.empty()) {
    warnings.push_back(std::move(advice));
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
