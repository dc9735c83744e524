// The inputs and outputs of trained models as JSON, for the files of models.
#pragma once

#include <absl/status/statusor.h>

#include <nlohmann/json_fwd.hpp>

#include "common/data/table/feature_reader.h"

namespace traind {

// Without the text columns.
nlohmann::json InputSchemaJson(const InputSchema& input);

// DataLoss: the JSON is not as InputSchemaJson() has written it.
absl::StatusOr<InputSchema> InputSchemaFromJson(const nlohmann::json& json);

}  // namespace traind
