#pragma once

#include <absl/status/statusor.h>

#include <memory>

#include "worker/model/networks/model.h"

namespace traind {

// The network with low-rank changes of the linear layers in its body (Hu et al. 2021): to each
// matrix W [out, in] the product of <name>.lora_B.weight [out, rank] and <name>.lora_A.weight
// [rank, in] is added, times alpha / rank. B starts at 0. Everything else of the body is fixed
// (Parameters::Fix); the head is trained.
// InvalidArgument: the network has no body, or no linear layers in it.
absl::StatusOr<std::unique_ptr<Model>> WithLora(std::unique_ptr<Model> network,
                                                const plain::LoraSpec& spec,
                                                Parameters& parameters);

}  // namespace traind
