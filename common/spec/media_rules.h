// Rules of what rows have besides their columns (data.image, data.text), and of the models for it.
#pragma once

#include <functional>
#include <string>

#include "proto/job.pb.h"

namespace traind {

// Tells of each mistake: the field's path, and what is wrong with it.
// partial: what is missing comes from another spec.
void CheckMedia(const v1::JobSpec& spec, bool partial,
                const std::function<void(const std::string&, const std::string&)>& add);

// Returns the medium that rows have besides their columns: image, text or volume; empty: none.
std::string MediaOf(const v1::DataSpec& data);

// Whether volumes are resampled (data.volume.spacing).
bool Resamples(const v1::VolumeSpec& volume);

// The kind of model that the spec names, such as "mlp"; empty where it names none.
std::string NetworkName(const v1::ModelSpec& model);

}  // namespace traind
