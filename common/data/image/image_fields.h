// What a spec says of its images.
#pragma once

#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>

#include <cstdint>
#include <optional>
#include <string>

#include "common/data/image/image_array.h"
#include "proto/plain/job.h"

namespace traind {

// data.image, resolved (proto/job.proto).
struct ImageFields {
  std::string column = plain::ImageSpec().column;
  int64_t size = plain::ImageSpec().size, channels = plain::ImageSpec().channels;
  // Of arrays.
  ImageLayout layout = ImageLayout::kAuto;
  std::optional<ValueRange> range;  // none: the type's own
  std::string labels, test_labels;  // paths; empty: in the archive, or none
  // Members of an archive; empty: by the usual names.
  std::string train_array, labels_array, test_array, test_labels_array;
};

// InvalidArgument names the field.
absl::StatusOr<ImageFields> ImageFieldsOf(const plain::ImageSpec& spec);
// json: the section. InvalidArgument names the field.
absl::StatusOr<ImageFields> ParseImageFields(absl::string_view json);

// "", "channels_last" or "channels_first". InvalidArgument: another word.
absl::StatusOr<ImageLayout> ImageLayoutByName(absl::string_view name);

}  // namespace traind
