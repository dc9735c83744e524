#include "worker/daemon/watchdog.h"

#include <algorithm>
#include <cmath>
#include <variant>

namespace traind::worker {
namespace {

// A Rank's figure, which may be anything. A day at most: no figure may switch the
// watchdog off.
absl::Duration Figure(double seconds) {
  if (!std::isfinite(seconds) || seconds <= 0) return absl::ZeroDuration();
  return absl::Seconds(std::min(seconds, 86'400.0));
}

}  // namespace

void Watchdog::Heard(const rank_protocol::FromProcess& message, absl::Duration now) {
  heard_at_ = now;
  if (std::holds_alternative<rank_protocol::Started>(message)) {
    started_ = true;
  } else if (const auto* probe = std::get_if<rank_protocol::Probe>(&message)) {
    step_ = Figure(probe->step_s);
    evaluate_ = std::max(evaluate_, Figure(probe->evaluate_s));
    predict_ = std::max(predict_, Figure(probe->predict_s));
  } else if (const auto* progress = std::get_if<rank_protocol::Progress>(&message)) {
    if (progress->steps_per_s > 0) step_ = Figure(1 / progress->steps_per_s);
  } else if (const auto* epoch = std::get_if<rank_protocol::Epoch>(&message)) {
    evaluate_ = Figure(epoch->evaluate_s);
  } else if (const auto* fold = std::get_if<rank_protocol::FoldSaved>(&message)) {
    predict_ = std::max(predict_, Figure(fold->predict_s));
  }
}

absl::Duration Watchdog::Allowed() const {
  if (!started_) return std::max(min_silence_, start_silence_);
  return std::max({min_silence_, 20 * step_, 3 * evaluate_, 3 * predict_});
}

}  // namespace traind::worker
