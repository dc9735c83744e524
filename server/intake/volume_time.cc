#include "server/intake/volume_time.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>

#include <algorithm>

#include "common/base/duration.h"

namespace traind {

double SecondsPerVolume(const Job& source) {
  double seconds = 0;
  for (const Task& task : source.tasks) seconds = std::max(seconds, task.measured.evaluate_s);
  const auto rows = static_cast<double>(source.table.train_rows);
  if (rows < 1 || source.spec.folds < 1) return 0;
  return seconds / std::max(1.0, rows / source.spec.folds);
}

std::string VolumeTimeWarning(const Job& source, int64_t volumes, absl::Duration left) {
  const double each = SecondsPerVolume(source);
  const absl::Duration needed = absl::Seconds(each * static_cast<double>(volumes));
  if (needed <= left) return "";
  return absl::StrCat(
      "predict.data: a model of job ", source.id, absl::StrFormat(" took %.2g s", each),
      " for a volume on its slot, so one needs about ",
      DurationToText(absl::Ceil(needed, absl::Seconds(1))), " for ", volumes,
      " volumes of that size, and ", DurationToText(std::max(left, absl::ZeroDuration())),
      " are left after they were read; what no model reaches gets the floor's answer");
}

}  // namespace traind
