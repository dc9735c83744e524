#include "common/data/table/input_schema_json.h"

#include <absl/strings/str_cat.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "common/data/table/date_parts.h"

namespace traind {
namespace {

using Json = nlohmann::json;

Json FeatureJson(const Column& column) {
  Json json = {{"name", column.name},
               {"kind", column.kind == ColumnKind::kNumeric ? "numeric" : "categorical"}};
  if (column.kind == ColumnKind::kCategorical) json["categories"] = column.categories;
  if (column.date_part >= 0) {
    json["source"] = column.source;
    json["date_part"] = column.date_part;
    if (column.date_order == DateOrder::kDayFirst) json["day_first"] = true;
  }
  if (column.text_feature.kind != TextFeature::Kind::kNone) {
    json["source"] = column.source;
    json["text_feature"] = TextFeatureName(column.text_feature);
  }
  if (column.offset != 0) json["offset"] = column.offset;
  return json;
}

// Throws nlohmann's exceptions if the JSON is not as it was written.
Column FeatureFromJson(const Json& json) {
  Column column;
  json.at("name").get_to(column.name);
  if (json.at("kind") == "categorical") {
    column.kind = ColumnKind::kCategorical;
    json.at("categories").get_to(column.categories);
  }
  if (json.contains("date_part")) {
    json.at("source").get_to(column.source);
    json.at("date_part").get_to(column.date_part);
    if (json.contains("day_first")) column.date_order = DateOrder::kDayFirst;
  }
  if (json.contains("text_feature")) {
    json.at("source").get_to(column.source);
    const std::string part = json.at("text_feature");
    if (!ParseTextFeature(part, column.text_feature)) column.text_feature = {};
  }
  if (json.contains("offset")) json.at("offset").get_to(column.offset);
  return column;
}

}  // namespace

Json InputSchemaJson(const InputSchema& input) {
  Json features = Json::array();
  for (const Column& column : input.features) features.push_back(FeatureJson(column));
  return {{"features", std::move(features)},
          {"id", input.id},
          {"targets", input.targets},
          {"classes", input.classes}};
}

absl::StatusOr<InputSchema> InputSchemaFromJson(const Json& json) {
  InputSchema input;
  try {
    for (const Json& item : json.at("features")) input.features.push_back(FeatureFromJson(item));
    json.at("id").get_to(input.id);
    json.at("targets").get_to(input.targets);
    json.at("classes").get_to(input.classes);
  } catch (const Json::exception& e) {
    return absl::DataLossError(absl::StrCat("the columns: ", e.what()));
  }
  input.target_kind = input.classes.empty() ? TargetKind::kValue : TargetKind::kClasses;
  for (const Column& column : input.features) {
    if (column.date_part >= static_cast<int>(DateParts().size())) {
      return absl::DataLossError(
          absl::StrCat("column '", column.name, "': no such part of a date"));
    }
    const bool of_date = column.date_part >= 0;
    const bool of_text = column.text_feature.kind != TextFeature::Kind::kNone;
    if (!column.source.empty() && !of_date && !of_text) {
      return absl::DataLossError(
          absl::StrCat("column '", column.name, "': no such part of a text"));
    }
  }
  return input;
}

Json SeriesInputJson(const SeriesInput& series) {
  Json json = {{"time", series.time}, {"series", series.series}, {"names", series.names}};
  if (series.order == DateOrder::kDayFirst) json["day_first"] = true;
  if (series.step.unit != TimeStep::Unit::kNone) {
    const bool months = series.step.unit == TimeStep::Unit::kMonths;
    json["step"] = {{"unit", months ? "months" : "amount"}, {"amount", series.step.amount}};
  }
  return json;
}

SeriesInput SeriesInputFromJson(const Json& json) {
  SeriesInput series;
  json.at("time").get_to(series.time);
  json.at("series").get_to(series.series);
  json.at("names").get_to(series.names);
  if (json.contains("day_first")) series.order = DateOrder::kDayFirst;
  if (!json.contains("step")) return series;
  const bool months = json["step"].at("unit") == "months";
  series.step.unit = months ? TimeStep::Unit::kMonths : TimeStep::Unit::kAmount;
  json["step"].at("amount").get_to(series.step.amount);
  return series;
}

}  // namespace traind
