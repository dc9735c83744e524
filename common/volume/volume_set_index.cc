#include "common/volume/volume_set_index.h"

#include <absl/strings/str_cat.h>

#include <nlohmann/json.hpp>

#include "common/durable_file.h"

namespace traind {
namespace {

using Json = nlohmann::json;

Json Encode(const StoredVolume& v) {
  return {{"shape", {v.shape.depth, v.shape.height, v.shape.width, v.shape.channels}},
          {"type", static_cast<int>(v.type)},
          {"voxels", v.voxels_at},
          {"has_mask", v.has_mask},
          {"mask", v.mask_at},
          {"foreground", v.foreground},
          {"places", {v.places_at, v.places}},
          {"mean", v.mean},
          {"deviation", v.deviation},
          {"range", {v.least, v.most}}};
}

// Throws where a field is absent or of another kind.
StoredVolume Decode(const Json& json) {
  StoredVolume v;
  const Json& shape = json.at("shape");
  v.shape = {shape.at(0).get<int64_t>(), shape.at(1).get<int64_t>(), shape.at(2).get<int64_t>(),
             shape.at(3).get<int64_t>()};
  v.type = static_cast<VoxelType>(json.at("type").get<int>());
  v.voxels_at = json.at("voxels").get<uint64_t>();
  v.has_mask = json.at("has_mask").get<bool>();
  v.mask_at = json.at("mask").get<uint64_t>();
  v.foreground = json.at("foreground").get<int64_t>();
  v.places_at = json.at("places").at(0).get<uint64_t>();
  v.places = json.at("places").at(1).get<int64_t>();
  v.mean = json.at("mean").get<float>();
  v.deviation = json.at("deviation").get<float>();
  v.least = json.at("range").at(0).get<float>();
  v.most = json.at("range").at(1).get<float>();
  return v;
}

bool Sound(const StoredVolume& v) {
  const auto extent = [](int64_t size) { return size >= 1 && size <= kMostExtent; };
  return extent(v.shape.depth) && extent(v.shape.height) && extent(v.shape.width) &&
         extent(v.shape.channels) && v.shape.slice() <= kMostSliceValues &&
         v.type >= VoxelType::kUint8 && v.type <= VoxelType::kFloat32 && v.places >= 0 &&
         v.places <= v.foreground && v.foreground <= v.shape.voxels() && v.deviation > 0;
}

}  // namespace

std::string EncodeVolumeIndex(const std::vector<StoredVolume>& train,
                              const std::vector<StoredVolume>& test) {
  Json json = {{"train", Json::array()}, {"test", Json::array()}};
  for (const StoredVolume& v : train) json["train"].push_back(Encode(v));
  for (const StoredVolume& v : test) json["test"].push_back(Encode(v));
  const std::string text = json.dump();
  return absl::StrCat(Sha256Hex(text), text);
}

bool DecodeVolumeIndex(absl::string_view text, std::vector<StoredVolume>& train,
                       std::vector<StoredVolume>& test) {
  constexpr size_t kDigest = 64;
  if (text.size() < kDigest || Sha256Hex(text.substr(kDigest)) != text.substr(0, kDigest)) {
    return false;
  }
  const absl::string_view body = text.substr(kDigest);
  const Json json = Json::parse(body.begin(), body.end(), nullptr, false);
  try {
    for (const Json& item : json.at("train")) train.push_back(Decode(item));
    for (const Json& item : json.at("test")) test.push_back(Decode(item));
  } catch (const Json::exception&) {
    return false;
  }
  for (const auto* volumes : {&train, &test}) {
    for (const StoredVolume& v : *volumes) {
      if (!Sound(v)) return false;
    }
  }
  return true;
}

}  // namespace traind
