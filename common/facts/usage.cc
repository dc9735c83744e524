#include "common/facts/usage.h"

#include <absl/strings/str_format.h>

namespace traind {
namespace {

constexpr double kMuch = 0.15;       // of a share that explains a loss
constexpr double kMuchSteal = 0.05;  // of the whole machine

constexpr int64_t kMostAdvised = 65536;

std::string LargerBatch(const Usage& u) {
  if (u.batch <= 0 || u.batch >= kMostAdvised) return "a larger batch";
  return absl::StrFormat("a larger batch (train.batch: %d; it is %d)", 2 * u.batch, u.batch);
}

std::string Cause(const Usage& u) {
  if (u.exchange >= u.data_wait && u.exchange > kMuch) {
    return absl::StrFormat("%.0f %% of the time ranks wait for each other: fewer slots, or %s",
                           u.exchange * 100, LargerBatch(u));
  }
  if (u.data_wait > kMuch) {
    return absl::StrFormat("%.0f %% of the time goes into putting batches together: %s",
                           u.data_wait * 100, LargerBatch(u));
  }
  if (u.gpu && u.pause > kMuch) {
    return absl::StrFormat(
        "%.0f %% of the time goes into validation and checkpoints: larger epochs, or rarer "
        "checkpoints",
        u.pause * 100);
  }
  if (u.gpu) {
    return absl::StrFormat("the steps are too short for this GPU: %s, or a larger model",
                           LargerBatch(u));
  }
  if (u.steal > kMuchSteal) {
    return absl::StrFormat(
        "the host of this virtual machine gave %.0f %% of its time to others: another machine",
        u.steal * 100);
  }
  if (u.core < 0) return "other programs use this machine, or it has more ranks than cores";
  return absl::StrFormat(
      "the process had a core for %.0f %% of the time: other programs use this machine, or it has "
      "more ranks than cores",
      u.core * 100);
}

}  // namespace

std::string UsageAdvice(const Usage& usage) {
  if (usage.utilisation < 0 || usage.utilisation >= kGoodUtilisation) return "";
  return absl::StrFormat("utilisation is %.0f %% (%s): %s", usage.utilisation * 100,
                         usage.utilisation < kPoorUtilisation ? "poor" : "training waits",
                         Cause(usage));
}

}  // namespace traind
