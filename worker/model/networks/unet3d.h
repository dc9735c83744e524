#pragma once

#include <memory>

#include "worker/model/networks/model.h"

namespace traind {

// U-Net of volumes (Çiçek et al. 2016): a block is twice convolution 3x3x3, norm and ReLU; the norm
// is that of the batch, or with norm: instance that of each sample (Isensee et al. 2021). Each
// level halves the extent and doubles the channels; on the way up the level's own answer stands
// beside what comes from below. Extents are multiples of 2^(levels - 1). With
// deep_supervision each further level on the way up has an output in training, too.
// Of patches that are one slice deep the network is the U-Net of images (Ronneberger et al. 2015):
// its kernels have no first extent.
// Parameters, by PyTorch's names:
// down.<k>.<0|3>.weight [out, in, 3, 3, 3], down.<k>.<1|4>.{weight, bias}, those of a batch norm
// also {running_mean,running_var}, up.<k>.{weight,bias} [in, out, 2, 2, 2], dec.<k>.* as down,
// out.{weight,bias}, deep.<k>.{weight,bias}. Forward gives [B, outputs, D, H, W]; in predictions
// the mean over the mirrored views of the input.
absl::StatusOr<std::unique_ptr<Model>> CreateUnet3d(const ModelSpec& spec, const ModelShape& shape,
                                                    Parameters& parameters);

}  // namespace traind
