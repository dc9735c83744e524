// The inputs and outputs of trained models as JSON, for the files of models.
#pragma once

#include <absl/status/statusor.h>

#include <nlohmann/json_fwd.hpp>

#include "common/data/table/feature_reader.h"
#include "common/data/table/series_input.h"

namespace traind {

// Without the text columns.
nlohmann::json InputSchemaJson(const InputSchema& input);

// DataLoss: the JSON is not as InputSchemaJson() has written it.
absl::StatusOr<InputSchema> InputSchemaFromJson(const nlohmann::json& json);

// Throws nlohmann's exceptions if the JSON is not as SeriesInputJson() has written it.
nlohmann::json SeriesInputJson(const SeriesInput& series);
SeriesInput SeriesInputFromJson(const nlohmann::json& json);

}  // namespace traind
