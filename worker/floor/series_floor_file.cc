#include <absl/strings/str_cat.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "common/base/digest_text.h"
#include "common/base/durable_file.h"
#include "common/base/status_macros.h"
#include "common/data/table/input_schema_json.h"
#include "common/publish/floor_files.h"
#include "worker/floor/series_floor_model.h"

namespace traind {
namespace {

using Json = nlohmann::json;

constexpr int kFormat = 1;
constexpr char kBodyName[] = "floor";

std::string PathIn(const std::string& dir) { return absl::StrCat(dir, "/", kSeriesFloorModelFile); }

Json ScalesJson(const std::vector<LagScale>& scales) {
  Json list = Json::array();
  for (const LagScale& scale : scales) list.push_back({scale.mean, scale.inverse});
  return list;
}

std::vector<LagScale> ScalesFromJson(const Json& list) {
  std::vector<LagScale> scales;
  for (const Json& item : list) {
    scales.push_back({item.at(0).get<double>(), item.at(1).get<double>()});
  }
  return scales;
}

Json ModelJson(const SeriesFloorModel& model) {
  Json parts = Json::array(), ridge = Json::array();
  for (const SeriesFloorModel::Part& part : model.parts) {
    parts.push_back({{"name", part.name}, {"weight", part.weight}});
  }
  for (const LagModels::State& fold : model.ridge) {
    ridge.push_back({{"targets", ScalesJson(fold.targets)},
                     {"features", ScalesJson(fold.features)},
                     {"weights", fold.weights}});
  }
  return {{"format", kFormat},
          {"job", model.job},
          {"table_sha256", model.table_sha256},
          {"input", InputSchemaJson(model.input)},
          {"series", SeriesInputJson(model.series)},
          {"window", model.shape.window},
          {"horizon", model.shape.horizon},
          {"period", model.period},
          {"season", model.season},
          {"parts", std::move(parts)},
          {"prior", model.prior},
          {"ridge", std::move(ridge)}};
}

// Throws nlohmann's exceptions if the JSON is not as it was written.
absl::StatusOr<SeriesFloorModel> ModelFromJson(const Json& json) {
  SeriesFloorModel model;
  if (json.at("format").get<int>() > kFormat) {
    return absl::DataLossError("its format is newer than this engine");
  }
  json.at("job").get_to(model.job);
  json.at("table_sha256").get_to(model.table_sha256);
  ASSIGN_OR_RETURN(model.input, InputSchemaFromJson(json.at("input")));
  model.series = SeriesInputFromJson(json.at("series"));
  json.at("window").get_to(model.shape.window);
  json.at("horizon").get_to(model.shape.horizon);
  json.at("period").get_to(model.period);
  // The first files of format 1 have one length for all parts.
  model.season = json.value("season", model.period);
  for (const Json& item : json.at("parts")) {
    model.parts.push_back({item.at("name").get<std::string>(), item.at("weight").get<double>()});
  }
  json.at("prior").get_to(model.prior);
  for (const Json& item : json.at("ridge")) {
    model.ridge.push_back({ScalesFromJson(item.at("targets")), ScalesFromJson(item.at("features")),
                           item.at("weights").get<std::vector<std::vector<float>>>()});
  }
  if (model.shape.window < 1 || model.shape.horizon < 1 || model.period < 1 || model.season < 1 ||
      model.input.targets.empty() || model.prior.size() != model.input.targets.size()) {
    return absl::DataLossError("its parts are inconsistent");
  }
  return model;
}

}  // namespace

absl::Status WriteSeriesFloorModel(const std::string& dir, const SeriesFloorModel& model) {
  const std::string text = ModelJson(model).dump(-1, ' ', false, Json::error_handler_t::replace);
  return WriteFileDurably(PathIn(dir), WithDigest(kBodyName, text));
}

absl::StatusOr<SeriesFloorModel> ReadSeriesFloorModel(const std::string& dir) {
  const std::string path = PathIn(dir);
  ASSIGN_OR_RETURN(const std::string body, ReadBody(path, kBodyName));
  try {
    absl::StatusOr<SeriesFloorModel> model = ModelFromJson(Json::parse(body));
    return model.ok() ? std::move(model) : Damaged(path, model.status().message());
  } catch (const Json::exception& e) {
    return Damaged(path, e.what());
  }
}

}  // namespace traind
