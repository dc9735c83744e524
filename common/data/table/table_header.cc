#include "common/data/table/table_header.h"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <climits>
#include <cstring>
#include <nlohmann/json.hpp>

#include "common/base/status_macros.h"

namespace traind {
namespace {

using Json = nlohmann::json;

constexpr uint64_t kMaxRows = uint64_t{1} << 40;

absl::Status Damaged(absl::string_view name, absl::string_view what) {
  return absl::DataLossError(absl::StrCat(name, " is not a complete table: ", what));
}

Json PlaceJson(const ArrayPlace& place, absl::string_view dtype) {
  return Json::array({place.offset, std::string(dtype), place.bytes});
}

// Reads typed values from a JSON object. The first invalid field is recorded, and all later ones
// come out empty.
class Fields {
 public:
  explicit Fields(const Json& object) : object_(object) {
    if (!object.is_object()) wrong_ = "an object";
  }

  const Json* Find(const char* key) {
    if (!wrong_.empty()) return nullptr;
    const auto it = object_.find(key);
    if (it == object_.end()) {
      Wrong(key);
      return nullptr;
    }
    return &*it;
  }
  std::string Text(const char* key) {
    const Json* value = Find(key);
    if (value != nullptr && value->is_string()) return value->get<std::string>();
    Wrong(key);
    return "";
  }
  bool Flag(const char* key) {
    const Json* value = Find(key);
    if (value != nullptr && value->is_boolean()) return value->get<bool>();
    Wrong(key);
    return false;
  }
  int64_t Rows(const char* key) {
    const Json* value = Find(key);
    if (value != nullptr && value->is_number_unsigned() && value->get<uint64_t>() <= kMaxRows) {
      return value->get<int64_t>();
    }
    Wrong(key);
    return 0;
  }
  double Number(const char* key) {
    const Json* value = Find(key);
    if (value != nullptr && value->is_number()) return value->get<double>();
    Wrong(key);
    return 0;
  }
  std::vector<std::string> Texts(const char* key) {
    std::vector<std::string> texts;
    const Json* value = Find(key);
    if (value == nullptr || !value->is_array()) {
      Wrong(key);
      return texts;
    }
    for (const Json& item : *value) {
      if (!item.is_string()) {
        Wrong(key);
        return {};
      }
      texts.push_back(item.get<std::string>());
    }
    return texts;
  }
  ArrayPlace Place(const char* key, absl::string_view dtype) {
    const Json* value = Find(key);
    ArrayPlace place;
    if (value == nullptr || !value->is_array() || value->size() != 3 ||
        !(*value)[0].is_number_unsigned() || !(*value)[1].is_string() ||
        (*value)[1].get_ref<const std::string&>() != dtype || !(*value)[2].is_number_unsigned()) {
      Wrong(key);
      return place;
    }
    place.offset = (*value)[0].get<uint64_t>();
    place.bytes = (*value)[2].get<uint64_t>();
    return place;
  }
  const std::string& wrong() const { return wrong_; }

 private:
  void Wrong(const char* key) {
    if (wrong_.empty()) wrong_ = key;
  }

  const Json& object_;
  std::string wrong_;  // the invalid field; empty: none
};

// Checks that a place is `expected` bytes long and lies inside the data.
bool PlaceIsValid(const ArrayPlace& place, uint64_t expected, uint64_t begin, uint64_t file) {
  return place.bytes == expected && place.offset >= begin && place.offset <= file &&
         place.bytes <= file - place.offset && place.offset % kTableAlignment == 0;
}

absl::Status ParseFeatures(const Json& array, TableHeader& header, absl::string_view name) {
  if (!array.is_array()) return Damaged(name, "features");
  for (const Json& item : array) {
    Fields fields(item);
    Column column;
    column.name = fields.Text("name");
    const std::string kind = fields.Text("kind");
    column.kind = kind == "numeric" ? ColumnKind::kNumeric : ColumnKind::kCategorical;
    if (kind != "numeric" && kind != "categorical")
      return Damaged(name, "a feature has an unknown kind");
    const bool numeric = column.kind == ColumnKind::kNumeric;
    if (numeric && item.contains("source")) {
      column.source = fields.Text("source");
      if (item.contains("text_feature")) {
        if (!ParseTextFeature(fields.Text("text_feature"), column.text_feature)) {
          return Damaged(name, "a feature is an unknown part of a text");
        }
      } else {
        column.date_part = static_cast<int>(std::min<int64_t>(fields.Rows("date_part"), INT_MAX));
        if (item.contains("day_first")) column.date_order = DateOrder::kDayFirst;
      }
    }
    if (numeric && item.contains("offset")) column.offset = fields.Number("offset");
    if (item.contains("floor_only")) column.floor_only = fields.Flag("floor_only");
    if (!numeric) column.categories = fields.Texts("categories");
    const char* dtype = numeric ? "f4" : "i4";
    std::array<ArrayPlace, 2> places = {fields.Place("train", dtype), fields.Place("test", dtype)};
    if (!fields.wrong().empty()) {
      return Damaged(name, absl::StrCat("a feature has no valid '", fields.wrong(), "'"));
    }
    header.schema.features.push_back(std::move(column));
    header.features.push_back(places);
  }
  return absl::OkStatus();
}

absl::Status CheckPlaces(const TableHeader& header, uint64_t begin, uint64_t file,
                         absl::string_view name) {
  const TableSchema& schema = header.schema;
  const std::array<uint64_t, 2> bytes = {static_cast<uint64_t>(schema.train_rows) * 4,
                                         static_cast<uint64_t>(schema.test_rows) * 4};
  for (size_t split = 0; split < 2; ++split) {
    for (const auto& places : header.features) {
      if (!PlaceIsValid(places[split], bytes[split], begin, file)) {
        return Damaged(name, "a feature lies outside the file");
      }
    }
  }
  const uint64_t test_target = schema.test_has_target ? bytes[1] : 0;
  if (!PlaceIsValid(header.target[0], bytes[0], begin, file) ||
      !PlaceIsValid(header.target[1], test_target, begin, file)) {
    return Damaged(name, "the target lies outside the file");
  }
  const uint64_t ends = schema.id.empty() ? 0 : static_cast<uint64_t>(schema.test_rows) * 8;
  if (!PlaceIsValid(header.id_ends, ends, begin, file) ||
      !PlaceIsValid(header.id_text, header.id_text.bytes, begin, file)) {
    return Damaged(name, "the ids lie outside the file");
  }
  return absl::OkStatus();
}

// Arrays that only some tables have.
struct OptionalArray {
  const char* name;
  const char* dtype;
  uint64_t item_bytes;
  ArrayPlace* place;
  uint64_t items;
};

std::vector<OptionalArray> OptionalArrays(TableHeader& header) {
  const TableSchema& schema = header.schema;
  const auto train = static_cast<uint64_t>(schema.train_rows);
  const auto test = static_cast<uint64_t>(schema.test_rows);
  return {{"series_ends", "u8", 8, &header.series_ends[0], schema.series.size()},
          {"test_series_ends", "u8", 8, &header.series_ends[1], schema.series.size()},
          {"times", "f8", 8, &header.times, train},
          {"test_order", "i8", 8, &header.test_order, test},
          {"groups", "i4", 4, &header.groups, train},
          {"given_folds", "i4", 4, &header.given_folds, train}};
}

Json MoreTargetsJson(const TableHeader& header) {
  Json targets = Json::array();
  for (size_t i = 0; i < header.more_targets.size(); ++i) {
    targets.push_back({{"name", header.schema.more_targets[i]},
                       {"train", PlaceJson(header.more_targets[i][0], "f4")},
                       {"test", PlaceJson(header.more_targets[i][1], "f4")}});
  }
  return targets;
}

Json TextsJson(const TableHeader& header) {
  Json texts = Json::array();
  for (size_t i = 0; i < header.texts.size(); ++i) {
    const auto& [train, test] = header.texts[i];
    texts.push_back({{"name", header.schema.text_columns[i]},
                     {"train_ends", PlaceJson(train.ends, "u8")},
                     {"train_text", PlaceJson(train.text, "u1")},
                     {"test_ends", PlaceJson(test.ends, "u8")},
                     {"test_text", PlaceJson(test.text, "u1")}});
  }
  return texts;
}

absl::Status ParseTexts(const Json& array, uint64_t begin, uint64_t file, TableHeader& header,
                        absl::string_view name) {
  if (!array.is_array()) return Damaged(name, "'texts'");
  for (const Json& item : array) {
    Fields column(item);
    header.schema.text_columns.push_back(column.Text("name"));
    const std::array<TableHeader::Texts, 2> texts = {
        TableHeader::Texts{column.Place("train_ends", "u8"), column.Place("train_text", "u1")},
        TableHeader::Texts{column.Place("test_ends", "u8"), column.Place("test_text", "u1")}};
    if (!column.wrong().empty()) return Damaged(name, "'texts'");
    const std::array<int64_t, 2> rows = {header.schema.train_rows, header.schema.test_rows};
    for (size_t split = 0; split < 2; ++split) {
      const auto [ends, text] = texts[split];
      if (!PlaceIsValid(ends, static_cast<uint64_t>(rows[split]) * 8, begin, file) ||
          !PlaceIsValid(text, text.bytes, begin, file)) {
        return Damaged(name, "a text column lies outside the file");
      }
    }
    header.texts.push_back(texts);
  }
  return absl::OkStatus();
}

// Adds the parts that only some tables have.
void AddOptionalParts(const TableHeader& header, Json& json) {
  if (!header.more_targets.empty()) json["more_targets"] = MoreTargetsJson(header);
  if (!header.texts.empty()) json["texts"] = TextsJson(header);
  if (header.schema.ordered) json["series"] = header.schema.series;
  if (header.schema.time_order == DateOrder::kDayFirst) json["times_day_first"] = true;
  TableHeader copy = header;
  for (const OptionalArray& array : OptionalArrays(copy)) {
    if (array.place->bytes > 0) json[array.name] = PlaceJson(*array.place, array.dtype);
  }
}

absl::Status ParseOptionalParts(const Json& json, uint64_t begin, uint64_t file,
                                TableHeader& header, absl::string_view name) {
  Fields top(json);
  TableSchema& schema = header.schema;
  if (json.contains("series")) {
    schema.ordered = true;
    if (json.contains("times_day_first")) schema.time_order = DateOrder::kDayFirst;
    schema.series = top.Texts("series");
  }
  if (json.contains("more_targets")) {
    if (!json["more_targets"].is_array()) return Damaged(name, "it has no valid 'more_targets'");
    for (const Json& item : json["more_targets"]) {
      Fields target(item);
      schema.more_targets.push_back(target.Text("name"));
      header.more_targets.push_back({target.Place("train", "f4"), target.Place("test", "f4")});
      if (!target.wrong().empty()) return Damaged(name, "it has no valid 'more_targets'");
      const auto train = static_cast<uint64_t>(schema.train_rows) * 4;
      const uint64_t test =
          schema.test_has_target ? static_cast<uint64_t>(schema.test_rows) * 4 : 0;
      if (!PlaceIsValid(header.more_targets.back()[0], train, begin, file) ||
          !PlaceIsValid(header.more_targets.back()[1], test, begin, file)) {
        return Damaged(name, "a target lies outside the file");
      }
    }
    if (schema.target_kind != TargetKind::kValue)
      return Damaged(name, "it has no valid 'more_targets'");
  }
  if (json.contains("texts")) RETURN_IF_ERROR(ParseTexts(json["texts"], begin, file, header, name));
  for (const OptionalArray& array : OptionalArrays(header)) {
    if (!json.contains(array.name)) continue;
    *array.place = top.Place(array.name, array.dtype);
    if (!PlaceIsValid(*array.place, array.items * array.item_bytes, begin, file)) {
      return Damaged(name, absl::StrCat("'", array.name, "' lies outside the file"));
    }
  }
  if (!top.wrong().empty())
    return Damaged(name, absl::StrCat("it has no valid '", top.wrong(), "'"));
  const bool complete = header.series_ends[0].bytes > 0 && header.times.bytes > 0 &&
                        (schema.test_rows == 0 || header.series_ends[1].bytes > 0);
  if (schema.ordered && !complete) return Damaged(name, "its order is incomplete");
  return absl::OkStatus();
}

}  // namespace

uint64_t TableDataBegin(uint64_t json_bytes) {
  const uint64_t end = kTableMagic.size() + sizeof(uint64_t) + json_bytes;
  return (end + kTableAlignment - 1) / kTableAlignment * kTableAlignment;
}

std::string EncodeTableHeader(const TableHeader& header) {
  const TableSchema& schema = header.schema;
  Json features = Json::array();
  for (size_t i = 0; i < schema.features.size(); ++i) {
    const Column& column = schema.features[i];
    const bool numeric = column.kind == ColumnKind::kNumeric;
    const char* dtype = numeric ? "f4" : "i4";
    Json feature = {{"name", column.name},
                    {"kind", numeric ? "numeric" : "categorical"},
                    {"train", PlaceJson(header.features[i][0], dtype)},
                    {"test", PlaceJson(header.features[i][1], dtype)}};
    if (!numeric) feature["categories"] = column.categories;
    if (column.date_part >= 0) {
      feature["source"] = column.source;
      feature["date_part"] = static_cast<uint64_t>(column.date_part);
      if (column.date_order == DateOrder::kDayFirst) feature["day_first"] = true;
    }
    if (column.text_feature.kind != TextFeature::Kind::kNone) {
      feature["source"] = column.source;
      feature["text_feature"] = TextFeatureName(column.text_feature);
    }
    if (column.offset != 0) feature["offset"] = column.offset;
    if (column.floor_only) feature["floor_only"] = true;
    features.push_back(std::move(feature));
  }
  const bool classes = schema.target_kind == TargetKind::kClasses;
  const char* target_dtype = classes ? "i4" : "f4";
  Json json = {
      {"train_rows", static_cast<uint64_t>(schema.train_rows)},
      {"test_rows", static_cast<uint64_t>(schema.test_rows)},
      {"features", std::move(features)},
      {"target",
       {{"name", schema.target},
        {"kind", classes ? "classes" : "value"},
        {"classes", schema.classes},
        {"test_has_target", schema.test_has_target},
        {"train", PlaceJson(header.target[0], target_dtype)},
        {"test", PlaceJson(header.target[1], target_dtype)}}},
      {"id",
       {{"name", schema.id},
        {"ends", PlaceJson(header.id_ends, "u8")},
        {"text", PlaceJson(header.id_text, "u1")}}},
      {"content_sha256", schema.content_sha256},
      {"data_sha256", header.data_sha256},
      {"warnings", schema.warnings},
  };
  AddOptionalParts(header, json);
  const std::string text = json.dump(-1, ' ', false, Json::error_handler_t::replace);
  const uint64_t size = text.size();
  std::string bytes(kTableMagic);
  bytes.append(reinterpret_cast<const char*>(&size), sizeof size);
  bytes += text;
  bytes.resize(TableDataBegin(size), '\0');
  return bytes;
}

absl::StatusOr<TableHeader> ParseTableHeader(absl::string_view bytes, uint64_t file_bytes,
                                             absl::string_view name) {
  if (bytes.substr(0, kTableMagic.size()) != kTableMagic) {
    return Damaged(name, "its first bytes are wrong");
  }
  bytes.remove_prefix(kTableMagic.size());
  uint64_t size = 0;
  if (bytes.size() < sizeof size) return Damaged(name, "cut");
  std::memcpy(&size, bytes.data(), sizeof size);
  bytes.remove_prefix(sizeof size);
  if (bytes.size() < size) return Damaged(name, "it is cut within its header");
  const uint64_t begin = TableDataBegin(size);
  if (begin > file_bytes) return Damaged(name, "it is cut after its header");
  const Json json = Json::parse(bytes.begin(), bytes.begin() + size, nullptr, false);
  if (json.is_discarded()) return Damaged(name, "its header is not JSON");

  TableHeader header;
  TableSchema& schema = header.schema;
  Fields top(json);
  schema.train_rows = top.Rows("train_rows");
  schema.test_rows = top.Rows("test_rows");
  schema.content_sha256 = top.Text("content_sha256");
  header.data_sha256 = top.Text("data_sha256");
  schema.warnings = top.Texts("warnings");
  const Json* features = top.Find("features");
  const Json* target_json = top.Find("target");
  const Json* id_json = top.Find("id");
  if (!top.wrong().empty())
    return Damaged(name, absl::StrCat("it has no valid '", top.wrong(), "'"));
  RETURN_IF_ERROR(ParseFeatures(*features, header, name));

  Fields target(*target_json);
  schema.target = target.Text("name");
  const std::string kind = target.Text("kind");
  if (kind != "classes" && kind != "value") return Damaged(name, "the target has an unknown kind");
  schema.target_kind = kind == "classes" ? TargetKind::kClasses : TargetKind::kValue;
  schema.classes = target.Texts("classes");
  schema.test_has_target = target.Flag("test_has_target");
  const char* dtype = schema.target_kind == TargetKind::kClasses ? "i4" : "f4";
  header.target = {target.Place("train", dtype), target.Place("test", dtype)};
  if (!target.wrong().empty()) {
    return Damaged(name, absl::StrCat("the target has no valid '", target.wrong(), "'"));
  }
  Fields id(*id_json);
  schema.id = id.Text("name");
  header.id_ends = id.Place("ends", "u8");
  header.id_text = id.Place("text", "u1");
  if (!id.wrong().empty())
    return Damaged(name, absl::StrCat("the id has no valid '", id.wrong(), "'"));
  RETURN_IF_ERROR(CheckPlaces(header, begin, file_bytes, name));
  RETURN_IF_ERROR(ParseOptionalParts(json, begin, file_bytes, header, name));
  return header;
}

}  // namespace traind
