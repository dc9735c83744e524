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

// Where the spec names no model: a CNN for images, an encoder for text, else an MLP.
void ChooseModel(v1::JobSpec& spec);

}  // namespace traind
