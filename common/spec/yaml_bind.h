// A YAML tree into a protobuf message of any type, strictly, by reflection.
#pragma once

#include <google/protobuf/message.h>

#include <map>
#include <string>
#include <vector>

#include "common/spec/yaml_spec.h"
#include "common/spec/yaml_tree.h"

namespace traind {

// Reads options.overrides into the tree on top of text and fills message with
// the result. Every mistake becomes a problem with its place; what is right is
// set nevertheless. places: as in SpecReadResult.
void BindYaml(absl::string_view text, const SpecReadOptions& options,
              google::protobuf::Message& message, std::vector<SpecProblem>& problems,
              std::map<std::string, std::string>& places);

}  // namespace traind
