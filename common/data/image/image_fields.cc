#include "common/data/image/image_fields.h"

#include <absl/strings/str_cat.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "common/base/status_macros.h"

namespace traind {
namespace {

using Json = nlohmann::json;

absl::Status Wrong(absl::string_view field, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("data.image", field, ": ", what));
}

absl::Status ReadText(const Json& section, const char* key, std::string& to) {
  const auto it = section.find(key);
  if (it == section.end() || it->is_null()) return absl::OkStatus();
  if (!it->is_string()) return Wrong(absl::StrCat(".", key), "must be text");
  if (std::string text = it->get<std::string>(); !text.empty()) to = std::move(text);
  return absl::OkStatus();
}

// A value of 0 or null leaves `to` as it is.
absl::Status ReadNumber(const Json& section, const char* key, int64_t& to) {
  const auto it = section.find(key);
  if (it == section.end() || it->is_null()) return absl::OkStatus();
  if (!it->is_number_unsigned()) return Wrong(absl::StrCat(".", key), "must be a whole number");
  if (const auto number = it->get<int64_t>(); number != 0) to = number;
  return absl::OkStatus();
}

absl::Status ReadRange(const Json& section, std::optional<ValueRange>& range) {
  const auto black = section.find("black"), white = section.find("white");
  if (black == section.end() && white == section.end()) return absl::OkStatus();
  if (black == section.end() || white == section.end() || !black->is_number() ||
      !white->is_number() || black->get<double>() >= white->get<double>()) {
    return Wrong(".black", "black and white are two numbers, black the smaller one");
  }
  range = ValueRange{black->get<double>(), white->get<double>()};
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ImageLayout> ImageLayoutByName(absl::string_view name) {
  if (name.empty()) return ImageLayout::kAuto;
  if (name == "channels_last") return ImageLayout::kChannelsLast;
  if (name == "channels_first") return ImageLayout::kChannelsFirst;
  return Wrong(".layout",
               absl::StrCat("'", name, "' is not a layout: use channels_last or channels_first"));
}

absl::StatusOr<ImageFields> ParseImageFields(absl::string_view json) {
  const Json section = Json::parse(json.begin(), json.end(), nullptr, false);
  if (!section.is_object()) return Wrong("", "must be a section");
  ImageFields fields;
  for (const auto& [key, to] :
       {std::make_pair("column", &fields.column), std::make_pair("labels", &fields.labels),
        std::make_pair("test_labels", &fields.test_labels),
        std::make_pair("train_array", &fields.train_array),
        std::make_pair("labels_array", &fields.labels_array),
        std::make_pair("test_array", &fields.test_array),
        std::make_pair("test_labels_array", &fields.test_labels_array)}) {
    RETURN_IF_ERROR(ReadText(section, key, *to));
  }
  RETURN_IF_ERROR(ReadNumber(section, "size", fields.size));
  if (fields.size < 4 || fields.size > 1024) return Wrong(".size", "must be 4 to 1024");
  RETURN_IF_ERROR(ReadNumber(section, "channels", fields.channels));
  if (fields.channels != 1 && fields.channels != 3) return Wrong(".channels", "must be 1 or 3");
  std::string layout;
  RETURN_IF_ERROR(ReadText(section, "layout", layout));
  ASSIGN_OR_RETURN(fields.layout, ImageLayoutByName(layout));
  RETURN_IF_ERROR(ReadRange(section, fields.range));
  return fields;
}

}  // namespace traind
