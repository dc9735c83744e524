#include "worker/floor/volume_floor_model.h"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "common/base/digest_text.h"
#include "common/base/durable_file.h"
#include "common/base/status_macros.h"
#include "common/data/table/input_schema_json.h"
#include "common/data/volume/volume_input_json.h"
#include "common/publish/floor_files.h"

namespace traind {
namespace {

using Json = nlohmann::json;

constexpr int kFormat = 1;
constexpr char kBodyName[] = "floor";

std::string PathIn(const std::string& dir) { return absl::StrCat(dir, "/", kVolumeFloorModelFile); }

// Throws nlohmann's exceptions if the JSON is not as it was written.
absl::StatusOr<VolumeFloorModel> ModelFromJson(const Json& json) {
  VolumeFloorModel model;
  if (json.at("format").get<int>() > kFormat) {
    return absl::DataLossError("its format is newer than this engine");
  }
  json.at("job").get_to(model.job);
  json.at("model").get_to(model.name);
  json.at("table_sha256").get_to(model.table_sha256);
  ASSIGN_OR_RETURN(model.input, InputSchemaFromJson(json.at("input")));
  model.volume = VolumeInputFromJson(json.at("volume"));
  model.input.text_columns = {model.volume.column};
  json.at("least").get_to(model.bins.least);
  json.at("scale").get_to(model.bins.scale);
  json.at("labels").get_to(model.labels);
  const size_t classes = std::max<size_t>(1, model.volume.classes.size());
  if (!IsSound(model.volume) || model.labels.size() != IntensityBins::kCount ||
      std::any_of(model.labels.begin(), model.labels.end(),
                  [classes](uint8_t label) { return label > classes; })) {
    return absl::DataLossError("its parts are inconsistent");
  }
  return model;
}

}  // namespace

void AnswerSlice(const VolumeSet& set, const StoredVolume& volume, int64_t z,
                 const VoxelLabel& label, std::vector<float>& values) {
  const auto channels = static_cast<size_t>(volume.shape.channels);
  const auto width = static_cast<size_t>(set.values());
  std::vector<float> slice(static_cast<size_t>(volume.shape.slice()));
  set.ReadSlice(volume, z, absl::MakeSpan(slice));
  values.assign(slice.size() / channels * width, 0.0f);
  for (size_t i = 0; i < slice.size() / channels; ++i) {
    const uint8_t voxel_label = label(slice[i * channels]);
    if (width > 1) {
      values[i * width + voxel_label] = 1;
    } else {
      values[i] = voxel_label;
    }
  }
  set.Release(volume, z, 1);
}

absl::Status AnswerVolumes(const VolumeSet& set, const VoxelLabel& label,
                           const std::function<absl::Status(absl::Span<const float>)>& take) {
  std::vector<float> values;
  for (const StoredVolume& volume : set.volumes(Split::kTest)) {
    for (int64_t z = 0; z < volume.shape.depth; ++z) {
      AnswerSlice(set, volume, z, label, values);
      RETURN_IF_ERROR(take(values));
    }
  }
  return absl::OkStatus();
}

absl::Status WriteVolumeFloorModel(const std::string& dir, const VolumeFloorModel& model) {
  const Json json = {{"format", kFormat},
                     {"job", model.job},
                     {"model", model.name},
                     {"table_sha256", model.table_sha256},
                     {"input", InputSchemaJson(model.input)},
                     {"volume", VolumeInputJson(model.volume)},
                     {"least", model.bins.least},
                     {"scale", model.bins.scale},
                     {"labels", model.labels}};
  const std::string text = json.dump(-1, ' ', false, Json::error_handler_t::replace);
  return WriteFileDurably(PathIn(dir), WithDigest(kBodyName, text));
}

absl::StatusOr<VolumeFloorModel> ReadVolumeFloorModel(const std::string& dir) {
  const std::string path = PathIn(dir);
  ASSIGN_OR_RETURN(const std::string body, ReadBody(path, kBodyName));
  try {
    absl::StatusOr<VolumeFloorModel> model = ModelFromJson(Json::parse(body));
    return model.ok() ? std::move(model) : Damaged(path, model.status().message());
  } catch (const Json::exception& e) {
    return Damaged(path, e.what());
  }
}

}  // namespace traind
