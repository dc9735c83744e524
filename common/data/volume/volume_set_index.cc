#include "common/data/volume/volume_set_index.h"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "common/base/durable_file.h"

namespace traind {
namespace {

using Json = nlohmann::json;

// A single class is encoded as in the first version of the format.
void EncodeClasses(const StoredVolume& v, bool several, Json& json) {
  if (!several) {
    const StoredClass of = v.classes.empty() ? StoredClass() : v.classes[0];
    json["foreground"] = of.voxels;
    json["places"] = {of.places_at, of.places};
    return;
  }
  json["classes"] = Json::array();
  for (const StoredClass& of : v.classes) {
    json["classes"].push_back({of.voxels, of.places_at, of.places});
  }
}

void DecodeClasses(const Json& json, StoredVolume& v) {
  if (!v.has_mask) return;
  if (!json.contains("classes")) {
    v.classes = {{json.at("foreground").get<int64_t>(), json.at("places").at(0).get<uint64_t>(),
                  json.at("places").at(1).get<int64_t>()}};
    return;
  }
  for (const Json& of : json.at("classes")) {
    v.classes.push_back(
        {of.at(0).get<int64_t>(), of.at(1).get<uint64_t>(), of.at(2).get<int64_t>()});
  }
}

// [z, y, x]: the number of the file's axis, 1 for its z; < 0: it runs the other way there.
Json Encode(const Orientation& orientation) {
  Json axes = Json::array();
  for (size_t axis = 0; axis < 3; ++axis) {
    const int number = static_cast<int>(orientation.axes[axis]) + 1;
    axes.push_back(orientation.flipped[axis] ? -number : number);
  }
  return axes;
}

// Numbers of axes that are no orientation are left for Sound.
Orientation DecodeOrientation(const Json& json) {
  Orientation orientation;
  for (size_t axis = 0; axis < 3; ++axis) {
    const int64_t number = json.at(axis).get<int64_t>();
    orientation.axes[axis] = static_cast<size_t>(std::abs(number)) - 1;
    orientation.flipped[axis] = number < 0;
  }
  return orientation;
}

Json Encode(const StoredVolume& v, bool several) {
  Json json = {{"shape", {v.shape.depth, v.shape.height, v.shape.width, v.shape.channels}},
               {"type", static_cast<int>(v.type)},
               {"voxels", v.voxels_at},
               {"has_mask", v.has_mask},
               {"mask", v.mask_at},
               {"mean", v.mean},
               {"deviation", v.deviation},
               {"range", {v.least, v.most}}};
  EncodeClasses(v, several, json);
  if (v.resampled()) {
    json["own"] = {v.own.depth, v.own.height, v.own.width};
    json["own_mask"] = v.own_mask_at;
  }
  if (v.picture) json["picture"] = true;
  if (v.orientation.turned()) json["axes"] = Encode(v.orientation);
  if (v.geometry.has_value()) {
    const NiftiGeometry& g = *v.geometry;
    json["nifti"] = {{"pixdim", g.pixdim},         {"xyzt_units", g.xyzt_units},
                     {"qform_code", g.qform_code}, {"sform_code", g.sform_code},
                     {"quatern", g.quatern},       {"srow", g.srow}};
  }
  return json;
}

// Throws if a field is missing or has another type.
StoredVolume Decode(const Json& json) {
  StoredVolume v;
  const Json& shape = json.at("shape");
  v.shape = {shape.at(0).get<int64_t>(), shape.at(1).get<int64_t>(), shape.at(2).get<int64_t>(),
             shape.at(3).get<int64_t>()};
  v.type = static_cast<VoxelType>(json.at("type").get<int>());
  v.voxels_at = json.at("voxels").get<uint64_t>();
  v.has_mask = json.at("has_mask").get<bool>();
  v.mask_at = json.at("mask").get<uint64_t>();
  DecodeClasses(json, v);
  v.mean = json.at("mean").get<float>();
  v.deviation = json.at("deviation").get<float>();
  v.own = v.shape;
  v.own_mask_at = v.mask_at;
  if (json.contains("own")) {
    const Json& own = json["own"];
    v.own = {own.at(0).get<int64_t>(), own.at(1).get<int64_t>(), own.at(2).get<int64_t>(),
             v.shape.channels};
    v.own_mask_at = json.at("own_mask").get<uint64_t>();
  }
  v.least = json.at("range").at(0).get<float>();
  v.most = json.at("range").at(1).get<float>();
  v.picture = json.value("picture", false);
  if (json.contains("axes")) v.orientation = DecodeOrientation(json["axes"]);
  if (json.contains("nifti")) {
    const Json& g = json["nifti"];
    v.geometry = {g.at("pixdim"),     g.at("xyzt_units"), g.at("qform_code"),
                  g.at("sform_code"), g.at("quatern"),    g.at("srow")};
  }
  return v;
}

bool Sound(const VolumeShape& shape) {
  const auto extent = [](int64_t size) { return size >= 1 && size <= kMostExtent; };
  return extent(shape.depth) && extent(shape.height) && extent(shape.width) &&
         extent(shape.channels) && shape.slice() <= kMostSliceValues;
}

bool Sound(const Orientation& orientation) {
  std::array<size_t, 3> axes = orientation.axes;
  std::sort(axes.begin(), axes.end());
  return axes == Orientation().axes;
}

bool Sound(const StoredVolume& v, size_t classes) {
  const auto sound = [](const StoredClass& of) { return of.places >= 0 && of.places <= of.voxels; };
  return Sound(v.shape) && Sound(v.own) && Sound(v.orientation) && v.type >= VoxelType::kUint8 &&
         v.type <= VoxelType::kFloat32 && (!v.has_mask || v.classes.size() == classes) &&
         std::all_of(v.classes.begin(), v.classes.end(), sound) &&
         v.foreground() <= v.shape.voxels() && v.deviation > 0;
}

}  // namespace

std::string EncodeVolumeIndex(const VolumeIndex& index) {
  const bool several = index.classes.size() > 1;
  Json json = {{"train", Json::array()}, {"test", Json::array()}};
  if (!index.classes.empty()) json["class_names"] = index.classes;
  if (index.treatment.largest_component) json["components"] = "largest";
  if (index.treatment.choose_components) json["components"] = "auto";
  if (index.treatment.spacing.has_value()) json["spacing"] = *index.treatment.spacing;
  json["reader"] = index.treatment.reader;
  for (const StoredVolume& v : index.volumes[0]) json["train"].push_back(Encode(v, several));
  for (const StoredVolume& v : index.volumes[1]) json["test"].push_back(Encode(v, several));
  const std::string text = json.dump();
  return absl::StrCat(Sha256Hex(text), text);
}

bool DecodeVolumeIndex(absl::string_view text, VolumeIndex& index) {
  constexpr size_t kDigest = 64;
  if (text.size() < kDigest || Sha256Hex(text.substr(kDigest)) != text.substr(0, kDigest)) {
    return false;
  }
  const absl::string_view body = text.substr(kDigest);
  const Json json = Json::parse(body.begin(), body.end(), nullptr, false);
  try {
    if (json.contains("class_names")) {
      index.classes = json["class_names"].get<std::vector<std::string>>();
    }
    const std::string components = json.value("components", "");
    index.treatment.largest_component = components == "largest";
    index.treatment.choose_components = components == "auto";
    index.treatment.reader = json.value("reader", 1);  // sets of older engines lack it
    if (json.contains("spacing")) index.treatment.spacing = json["spacing"].get<Spacing>();
    for (const Json& item : json.at("train")) index.volumes[0].push_back(Decode(item));
    for (const Json& item : json.at("test")) index.volumes[1].push_back(Decode(item));
  } catch (const Json::exception&) {
    return false;
  }
  const size_t classes = std::max<size_t>(1, index.classes.size());
  for (const auto& volumes : index.volumes) {
    for (const StoredVolume& v : volumes) {
      if (!Sound(v, classes)) return false;
    }
  }
  return true;
}

}  // namespace traind
