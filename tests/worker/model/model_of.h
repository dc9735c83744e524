// Networks for tests, by name.
#pragma once

#include <absl/strings/str_cat.h>

#include <string>

#include "common/plain/plain_json.h"
#include "worker/model/networks/model_spec.h"

namespace traind {

// settings: JSON, as in a spec. REQUIRES: they are right.
inline ModelSpec ModelOf(const std::string& network, const std::string& settings = "{}") {
  return plain::FromJson<ModelSpec>(absl::StrCat("{\"", network, "\":", settings, "}")).value();
}

// The MLP's settings; it becomes one where it is no network yet.
inline plain::MlpSpec& MlpOf(ModelSpec& model) {
  return model.mlp.has_value() ? *model.mlp : model.mlp.emplace();
}

inline double& DropoutOf(ModelSpec& model) {
  const plain::FieldInfo& network = *NetworkOf(model);
  void* const settings = network.reach(&model, plain::Reach::kItem, 0);
  const plain::FieldInfo& dropout = *network.message->Find("dropout");
  return *static_cast<double*>(dropout.reach(settings, plain::Reach::kItem, 0));
}

}  // namespace traind
