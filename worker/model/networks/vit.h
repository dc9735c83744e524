#pragma once

#include <memory>

#include "common/data/weights/image_architectures.h"
#include "worker/model/networks/model.h"

namespace traind {

// A vision transformer (Dosovitskiy and others 2021) as timm makes it: squares of 16 x 16 pixels
// and a token of the class, learnt positions, layers with norms before attention and network, and
// exact GELU. The normed class token, beside the row's other columns, goes to the head. The table
// of positions has the size of the images that the network has learnt from (config.json of
// model.pretrained.folder, else 224 pixels a side); for others it is interpolated as timm does.
// Parameters: cls_token, pos_embed, patch_embed.proj, blocks.<i>.{norm1, attn.qkv, attn.proj,
// norm2, mlp.fc1, mlp.fc2}, norm, head. Errors: InvalidArgument if the sides of images are no
// multiples of 16.
absl::StatusOr<std::unique_ptr<Model>> CreateVit(const ModelSpec& spec,
                                                 const ImageArchitecture& architecture,
                                                 const ModelShape& shape, Parameters& parameters);

}  // namespace traind
