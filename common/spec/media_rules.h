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

// The network that the spec names, such as "mlp"; empty where it names none.
std::string NetworkName(const v1::ModelSpec& model);

// Where the spec names no network: the one for what its rows have (DefaultNetwork).
void ChooseModel(v1::JobSpec& spec);

}  // namespace traind
