#include "worker/predict/model_file.h"

#include <absl/strings/escaping.h>
#include <absl/strings/str_cat.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "common/base/digest_text.h"
#include "common/base/durable_file.h"
#include "common/base/job_layout.h"
#include "common/base/status_macros.h"
#include "common/data/table/input_schema_json.h"
#include "common/data/volume/volume_input_json.h"
#include "common/plain/plain_json.h"

namespace traind {
namespace {

using Json = nlohmann::json;

// Format 1 lacks what forecasts of later rows need. In format 2 all numbers are clamped, and in
// format 3 all columns are clipped in one way. Before format 5 no target is transformed.
constexpr int kFormat = 5;
constexpr TransformKind kNone = TransformKind::kNone;
constexpr char kSmooth[] = "smooth", kClamp[] = "clamp";
constexpr char kBodyName[] = "model";

std::string PathOf(const std::string& state_dir, const std::string& dir) {
  return absl::StrCat(state_dir, "/", dir, "/", kModelFile);
}

const char* OutlierName(OutlierForm form) {
  return form == OutlierForm::kSmooth ? kSmooth : kClamp;
}

Json EncoderJson(const RowEncoder::State& state) {
  Json numeric = Json::array(), categorical = Json::array();
  for (const auto& column : state.numeric) {
    numeric.push_back({{"feature", column.feature},
                       {"mean", column.mean},
                       {"inverse_scale", column.inverse_scale},
                       {"indicator", column.indicator},
                       {"outliers", OutlierName(column.outliers)}});
  }
  for (const auto& column : state.categorical) {
    categorical.push_back({{"feature", column.feature}, {"input_codes", column.input_codes}});
  }
  Json json = {{"numeric", std::move(numeric)},        {"categorical", std::move(categorical)},
               {"cardinalities", state.cardinalities}, {"window", state.shape.window},
               {"horizon", state.shape.horizon},       {"target_mean", state.target_mean},
               {"target_scale", state.target_scale}};
  for (const TargetTransform& transform : state.transforms) {
    json["target_transforms"].push_back({{"kind", TransformName(transform.kind)},
                                         {"lambda", transform.lambda},
                                         {"center", transform.center},
                                         {"unit", transform.unit},
                                         {"least", transform.least},
                                         {"most", transform.most}});
  }
  for (const RowEncoder::Target& target : state.targets) {
    json["targets"].push_back({{"mean", target.mean},
                               {"scale", target.scale},
                               {"difference", target.difference},
                               {"least", target.least},
                               {"most", target.most}});
  }
  return json;
}

Json LagsJson(const LagState& lags) {
  return {{"raw", lags.raw},     {"forward", lags.forward},
          {"lags", lags.lags},   {"periods", lags.periods},
          {"base", lags.base},   {"mean", lags.mean},
          {"scale", lags.scale}, {"known_ahead", lags.known_ahead}};
}

// Throws nlohmann's exceptions if the JSON is not as it was written.
LagState LagsFromJson(const Json& json) {
  LagState lags;
  json.at("raw").get_to(lags.raw);
  json.at("forward").get_to(lags.forward);
  json.at("lags").get_to(lags.lags);
  json.at("periods").get_to(lags.periods);
  json.at("base").get_to(lags.base);
  json.at("mean").get_to(lags.mean);
  json.at("scale").get_to(lags.scale);
  lags.known_ahead = json.value("known_ahead", lags.known_ahead);  // older files lack it
  return lags;
}

// Throws nlohmann's exceptions if the JSON is not as it was written.
RowEncoder::State EncoderFromJson(const Json& json) {
  RowEncoder::State state;
  const std::string of_all = json.value("outliers", kClamp);
  for (const Json& item : json.at("numeric")) {
    auto& column = state.numeric.emplace_back();
    item.at("feature").get_to(column.feature);
    item.at("mean").get_to(column.mean);
    item.at("inverse_scale").get_to(column.inverse_scale);
    item.at("indicator").get_to(column.indicator);
    if (item.value("outliers", of_all) == kSmooth) column.outliers = OutlierForm::kSmooth;
  }
  for (const Json& item : json.at("categorical")) {
    auto& column = state.categorical.emplace_back();
    item.at("feature").get_to(column.feature);
    item.at("input_codes").get_to(column.input_codes);
  }
  json.at("cardinalities").get_to(state.cardinalities);
  json.at("window").get_to(state.shape.window);
  json.at("horizon").get_to(state.shape.horizon);
  json.at("target_mean").get_to(state.target_mean);
  json.at("target_scale").get_to(state.target_scale);
  for (const Json& item : json.value("target_transforms", Json::array())) {
    TargetTransform& transform = state.transforms.emplace_back();
    // A kind that this engine does not know is not sound.
    transform.kind = ParseTransform(item.at("kind").get<std::string>()).value_or(kNone);
    item.at("lambda").get_to(transform.lambda);
    item.at("center").get_to(transform.center);
    item.at("unit").get_to(transform.unit);
    item.at("least").get_to(transform.least);
    item.at("most").get_to(transform.most);
  }
  for (const Json& item : json.value("targets", Json::array())) {
    RowEncoder::Target& target = state.targets.emplace_back();
    item.at("mean").get_to(target.mean);
    item.at("scale").get_to(target.scale);
    item.at("difference").get_to(target.difference);
    item.at("least").get_to(target.least);
    item.at("most").get_to(target.most);
  }
  return state;
}

absl::StatusOr<ModelFile> FileFromJson(const Json& json) {
  ModelFile file;
  const int format = json.at("format").get<int>();
  if (format > kFormat) {
    return absl::DataLossError(
        absl::StrCat("it has format ", format, ", but this engine reads up to ", kFormat));
  }
  json.at("job").get_to(file.job);
  json.at("fold").get_to(file.fold);
  file.trial = json.value("trial", 0);  // files of older engines have none
  json.at("seed").get_to(file.seed);
  json.at("table_sha256").get_to(file.table_sha256);
  json.at("spec").get_to(file.spec_json);
  ASSIGN_OR_RETURN(file.input, InputSchemaFromJson(json.at("input")));
  file.encoder = EncoderFromJson(json.at("encoder"));
  if (json.contains("series")) file.series = SeriesInputFromJson(json["series"]);
  if (json.contains("lags")) file.lags = LagsFromJson(json["lags"]);
  if (json.contains("text")) {
    json["text"].at("columns").get_to(file.input.text_columns);
    // If this is not base64, the result is not a tokenizer, and its reader says so.
    absl::Base64Unescape(json["text"].at("tokenizer").get<std::string>(), &file.tokenizer);
  }
  if (json.contains("image")) {
    json["image"].at("column").get_to(file.image.column);
    json["image"].at("mean").get_to(file.pixel_scale.mean);
    json["image"].at("inverse_scale").get_to(file.pixel_scale.inverse_scale);
    file.input.text_columns = {file.image.column};
  }
  if (json.contains("volume")) {
    file.volume = VolumeInputFromJson(json["volume"]);
    file.input.text_columns = {file.volume->column};
  }
  return file;
}

// What the resolved spec says about a kind of media; null: rows have none of it.
Json MediaSection(const ModelFile& file, const char* kind) {
  const Json spec = Json::parse(file.spec_json, nullptr, false);
  return spec.is_object() ? spec.value(Json::json_pointer(absl::StrCat("/data/", kind)), Json())
                          : Json();
}

absl::Status CheckVolume(const ModelFile& file) {
  if (file.volume.has_value() || MediaSection(file, "volume").is_null()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      "an older engine trained this model and stored no form of its volumes");
}

// Reads the images' size, channels and other fields from the spec; none if rows have no images.
absl::Status ReadImageFields(ModelFile& file) {
  const Json section = MediaSection(file, "image");
  if (section.is_null() && file.pixel_scale.mean.empty()) return absl::OkStatus();
  if (file.pixel_scale.mean.empty()) {
    return absl::FailedPreconditionError(
        "an older engine trained this model and stored no pixel scale");
  }
  ASSIGN_OR_RETURN(file.image, ParseImageFields(section.dump()));
  return absl::OkStatus();
}

bool SeriesFit(const ModelFile& file) {
  if (!file.series.has_value()) return !file.lags.has_value();
  const bool whole =
      !file.series->names.empty() && file.encoder.targets.size() == file.input.targets.size() &&
      (file.series->step.unit == TimeStep::Unit::kNone || file.series->step.amount > 0);
  if (!whole || !file.lags.has_value()) return whole;
  const LagState& lags = *file.lags;
  if (lags.lags < 0 || lags.lags > std::numeric_limits<int32_t>::max()) return false;
  const auto past = lags.lags + static_cast<int64_t>(lags.periods.size()) + 1;
  return lags.base >= -1 && lags.base < past &&
         std::all_of(lags.periods.begin(), lags.periods.end(), [](int64_t p) { return p > 0; }) &&
         lags.mean.size() == file.series->names.size() && lags.scale.size() == lags.mean.size();
}

// Checks everything that memory safety depends on.
bool Fits(const ModelFile& file) {
  const auto& features = file.input.features;
  const auto is = [&](int feature, ColumnKind kind) {
    return feature >= 0 && static_cast<size_t>(feature) < features.size() &&
           features[static_cast<size_t>(feature)].kind == kind;
  };
  for (const auto& column : file.encoder.numeric) {
    if (!is(column.feature, ColumnKind::kNumeric) || !std::isfinite(column.mean) ||
        !std::isfinite(column.inverse_scale)) {
      return false;
    }
  }
  if (file.encoder.cardinalities.size() != file.encoder.categorical.size()) return false;
  for (size_t i = 0; i < file.encoder.categorical.size(); ++i) {
    const auto& column = file.encoder.categorical[i];
    if (!is(column.feature, ColumnKind::kCategorical)) return false;
    if (file.encoder.cardinalities[i] < kFirstSeenCode) return false;
    for (const int32_t code : column.input_codes) {
      if (code < 0 || code >= file.encoder.cardinalities[i]) return false;
    }
  }
  const size_t channels = file.pixel_scale.mean.size();
  if (file.pixel_scale.inverse_scale.size() != channels ||
      (channels > 0 && channels != static_cast<size_t>(file.image.channels))) {
    return false;
  }
  const size_t targets = file.encoder.target_mean.size();
  const auto& transforms = file.encoder.transforms;
  if (!transforms.empty() && transforms.size() != targets) return false;
  for (const TargetTransform& transform : transforms) {
    if (transform.kind == kNone || !IsSound(transform)) return false;
  }
  return SeriesFit(file) && (!file.volume.has_value() || IsSound(*file.volume)) &&
         file.input.outputs() > 0 && file.encoder.shape.window >= 1 &&
         file.encoder.shape.horizon >= 0 && targets == file.encoder.target_scale.size() &&
         (file.input.classes.empty() ? targets == file.input.targets.size() : targets == 0);
}

}  // namespace

ModelFile ModelFileOf(const rank_protocol::Train& train, uint64_t seed, const Table& table,
                      RowEncoder::State encoder) {
  const TableSchema& schema = table.schema();
  ModelFile file;
  file.job = train.job;
  file.fold = train.fold;
  file.trial = train.trial;
  file.seed = seed;
  file.table_sha256 = schema.content_sha256;
  file.spec_json = train.spec_json;
  file.input = InputSchemaOf(schema);
  file.encoder = std::move(encoder);
  const auto spec = plain::FromJson<plain::JobSpec>(train.spec_json);
  if (spec.ok() && spec->data.volume) file.volume.emplace().column = spec->data.volume->image;
  if (file.encoder.targets.empty() || !schema.ordered || !spec.ok()) return file;
  file.series = SeriesInput{spec->data.time.value_or(""), spec->data.series.value_or(""),
                            schema.series, StepOf(table), schema.time_order};
  return file;
}

absl::Status WriteModelFile(const std::string& state_dir, const std::string& dir,
                            const ModelFile& file) {
  Json body = {{"format", kFormat},
               {"job", file.job},
               {"fold", file.fold},
               {"trial", file.trial},
               {"seed", file.seed},
               {"table_sha256", file.table_sha256},
               {"spec", file.spec_json},
               {"input", InputSchemaJson(file.input)},
               {"encoder", EncoderJson(file.encoder)}};
  if (file.series.has_value()) body["series"] = SeriesInputJson(*file.series);
  if (file.lags.has_value()) body["lags"] = LagsJson(*file.lags);
  if (!file.tokenizer.empty()) {
    body["text"] = {{"columns", file.input.text_columns},
                    {"tokenizer", absl::Base64Escape(file.tokenizer)}};
  }
  if (!file.pixel_scale.mean.empty()) {
    body["image"] = {{"column", file.input.text_columns.at(0)},
                     {"mean", file.pixel_scale.mean},
                     {"inverse_scale", file.pixel_scale.inverse_scale}};
  }
  if (file.volume.has_value()) body["volume"] = VolumeInputJson(*file.volume);
  const std::string text = body.dump(-1, ' ', false, Json::error_handler_t::replace);
  return WriteFileDurably(PathOf(state_dir, dir), WithDigest(kBodyName, text));
}

absl::StatusOr<ModelFile> ReadModelFile(const std::string& state_dir, const std::string& dir) {
  const std::string path = PathOf(state_dir, dir);
  ASSIGN_OR_RETURN(const std::string body, ReadBody(path, kBodyName));
  try {
    absl::StatusOr<ModelFile> read = FileFromJson(Json::parse(body));
    if (!read.ok()) return Damaged(path, read.status().message());
    ModelFile file = *std::move(read);
    RETURN_IF_ERROR(ReadImageFields(file));
    RETURN_IF_ERROR(CheckVolume(file));
    if (!Fits(file)) return Damaged(path, "its parts are inconsistent");
    return file;
  } catch (const Json::exception& e) {
    return Damaged(path, e.what());
  }
}

}  // namespace traind
