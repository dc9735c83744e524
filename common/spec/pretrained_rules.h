// Rules of model.pretrained, and its map as a file.
#pragma once

#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>

#include <functional>
#include <map>
#include <string>

#include "proto/job.pb.h"

namespace traind {

// The network of another library that the model is, such as "bert"; empty: it is one of ours.
std::string ArchitectureOf(const v1::ModelSpec& model);

// Whether the field at this path, such as "model.cnn.width", is the architecture's own, so that a
// spec with it sets nothing there.
bool IsFixedByArchitecture(const v1::ModelSpec& model, absl::string_view path);

// Fills in the fields that follow from the architecture alone.
void FillArchitecture(v1::ModelSpec& model);

// Calls add(field path, what is wrong).
void CheckPretrained(const v1::ModelSpec& model,
                     const std::function<void(const std::string&, const std::string&)>& add);

// The same, of train.freeze and train.layer_decay.
void CheckFineTuning(const v1::JobSpec& spec,
                     const std::function<void(const std::string&, const std::string&)>& add);

// Reads YAML text: a map of names to texts, at most 1 MiB. InvalidArgument names the line and
// column of the first mistake.
absl::StatusOr<std::map<std::string, std::string>> ReadNameMap(absl::string_view text);

}  // namespace traind
