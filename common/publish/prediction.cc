#include "common/publish/prediction.h"

namespace traind {

std::string QualityName(Quality quality) {
  return quality == Quality::kNone ? "" : plain::kQualityNames[static_cast<int>(quality)];
}

Quality QualityByName(absl::string_view name) {
  for (const Quality quality : {Quality::kFloor, Quality::kDegraded, Quality::kFull}) {
    if (name == QualityName(quality)) return quality;
  }
  return Quality::kNone;
}

}  // namespace traind
