// What a model reads of volumes as JSON, for the files of models.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "common/data/volume/volume_input.h"

namespace traind {

nlohmann::json VolumeInputJson(const VolumeInput& volume);

// Throws nlohmann's exceptions if the JSON is not as VolumeInputJson() has written it.
VolumeInput VolumeInputFromJson(const nlohmann::json& json);

// Checks what memory safety depends on.
bool IsSound(const VolumeInput& volume);

}  // namespace traind
