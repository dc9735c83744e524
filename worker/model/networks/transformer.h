#pragma once

#include <memory>

#include "worker/model/networks/model.h"

namespace traind {

// Encoder layers of self-attention and a two-layer network, each with a residual
// connection and layer norm (Vaswani et al. 2017; pre_norm: Xiong et al. 2020, with a
// last norm), over inputs projected to `width` plus a learnt vector per position, and a
// fully connected head on the last time step, or on their mean. All steps see all
// others: they are the past. A plain row is a sequence of one step.
// Parameters, D = width, F = feedforward: those of InputColumns; input.weight [D, in],
// input.bias; position [T, D]; of layer k, under encoder.layers.<k>.:
// self_attn.in_proj_weight [3D, D], self_attn.in_proj_bias, self_attn.out_proj.weight
// [D, D], .bias, linear1.weight [F, D], .bias, linear2.weight [D, F], .bias,
// norm1.weight [D], .bias, norm2.weight, .bias; with pre_norm encoder.norm.weight,
// .bias; head.weight [outputs, D], head.bias.
absl::StatusOr<std::unique_ptr<Model>> CreateTransformer(const ModelSpec& spec,
                                                         const ModelShape& shape,
                                                         Parameters& parameters);

}  // namespace traind
