#include "common/data/volume/volume_input_json.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

namespace traind {
namespace {

using Json = nlohmann::json;

constexpr char kLargest[] = "largest", kAuto[] = "auto";

}  // namespace

Json VolumeInputJson(const VolumeInput& volume) {
  Json json = {{"column", volume.column},
               {"channels", volume.channels},
               {"patch", volume.patch},
               {"classes", volume.classes},
               {"reader", volume.treatment.reader}};
  if (volume.treatment.largest_component) json["components"] = kLargest;
  if (volume.treatment.choose_components) json["components"] = kAuto;
  if (volume.treatment.spacing.has_value()) json["spacing"] = *volume.treatment.spacing;
  return json;
}

VolumeInput VolumeInputFromJson(const Json& json) {
  VolumeInput volume;
  json.at("column").get_to(volume.column);
  json.at("channels").get_to(volume.channels);
  json.at("patch").get_to(volume.patch);
  json.at("classes").get_to(volume.classes);
  volume.treatment.reader = json.value("reader", 1);  // older files lack it
  const std::string components = json.value("components", "");
  volume.treatment.largest_component = components == kLargest;
  volume.treatment.choose_components = components == kAuto;
  if (json.contains("spacing")) volume.treatment.spacing = json["spacing"].get<Spacing>();
  return volume;
}

bool IsSound(const VolumeInput& volume) {
  const auto positive = [](double distance) { return std::isfinite(distance) && distance > 0; };
  const auto extent = [](int64_t size) { return size >= 1 && size <= kMostExtent; };
  const std::optional<Spacing>& spacing = volume.treatment.spacing;
  return std::all_of(volume.patch.begin(), volume.patch.end(), extent) && extent(volume.channels) &&
         (!spacing.has_value() || std::all_of(spacing->begin(), spacing->end(), positive));
}

}  // namespace traind
