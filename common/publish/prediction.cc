#include "common/publish/prediction.h"

namespace traind {

std::string QualityName(Quality quality) {
  switch (quality) {
    case Quality::kFloor:
      return "FLOOR";
    case Quality::kDegraded:
      return "DEGRADED";
    case Quality::kFull:
      return "FULL";
    case Quality::kNone:
      break;
  }
  return "";
}

Quality QualityByName(absl::string_view name) {
  for (const Quality quality : {Quality::kFloor, Quality::kDegraded, Quality::kFull}) {
    if (name == QualityName(quality)) return quality;
  }
  return Quality::kNone;
}

}  // namespace traind
