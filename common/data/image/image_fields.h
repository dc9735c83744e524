// The fields of a spec that describe its images.
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
  // The following fields apply to arrays only.
  ImageLayout layout = ImageLayout::kAuto;
  std::optional<ValueRange> range;  // nullopt: the type's own
  std::string labels, test_labels;  // paths; empty: labels are in the archive, or there are none
  // Names of an archive's members; empty: the usual names are tried.
  std::string train_array, labels_array, test_array, test_labels_array;
};

// InvalidArgument names the field.
absl::StatusOr<ImageFields> ImageFieldsOf(const plain::ImageSpec& spec);
// json: the section. InvalidArgument names the field.
absl::StatusOr<ImageFields> ParseImageFields(absl::string_view json);

// Reads "", "channels_last" or "channels_first". InvalidArgument: any other word.
absl::StatusOr<ImageLayout> ImageLayoutByName(absl::string_view name);

}  // namespace traind
