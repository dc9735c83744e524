#include "common/data/image/image_fields.h"

#include <absl/strings/str_cat.h>

#include "common/base/status_macros.h"
#include "common/plain/plain_json.h"

namespace traind {
namespace {

absl::Status Wrong(absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("data.image.", what));
}

absl::Status TakeRange(const plain::ImageSpec& spec, std::optional<ValueRange>& range) {
  if (!spec.black.has_value() && !spec.white.has_value()) return absl::OkStatus();
  if (!spec.black.has_value() || !spec.white.has_value() || *spec.black >= *spec.white) {
    return Wrong("black: black and white are two numbers, black the smaller one");
  }
  range = ValueRange{*spec.black, *spec.white};
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ImageLayout> ImageLayoutByName(absl::string_view name) {
  if (name.empty()) return ImageLayout::kAuto;
  if (name == "channels_last") return ImageLayout::kChannelsLast;
  if (name == "channels_first") return ImageLayout::kChannelsFirst;
  return Wrong(absl::StrCat("layout: '", name, "' is no layout"));
}

absl::StatusOr<ImageFields> ImageFieldsOf(const plain::ImageSpec& spec) {
  ImageFields fields;
  fields.column = spec.column;
  fields.size = spec.size;
  fields.channels = spec.channels;
  ASSIGN_OR_RETURN(fields.layout, ImageLayoutByName(spec.layout.value_or("")));
  RETURN_IF_ERROR(TakeRange(spec, fields.range));
  fields.labels = spec.labels.value_or("");
  fields.test_labels = spec.test_labels.value_or("");
  fields.train_array = spec.train_array.value_or("");
  fields.labels_array = spec.labels_array.value_or("");
  fields.test_array = spec.test_array.value_or("");
  fields.test_labels_array = spec.test_labels_array.value_or("");
  return fields;
}

absl::StatusOr<ImageFields> ParseImageFields(absl::string_view json) {
  const absl::StatusOr<plain::ImageSpec> spec = plain::FromJson<plain::ImageSpec>(json);
  if (!spec.ok()) return Wrong(spec.status().message());
  return ImageFieldsOf(*spec);
}

}  // namespace traind
