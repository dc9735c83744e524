// Guesses how fast a Job trains before anything like it was measured: from the bytes that a fold
// reads and the multiplications that its network makes.
//
// Threads: safe, nothing is kept.
#pragma once

#include <absl/types/span.h>

#include <cstdint>

#include "server/domain/job.h"

namespace traind {

// Multiplications of one forward pass over one sample, by the kind of network. They count the
// large products alone; norms, activations and embeddings are left out.
double MlpMultiplications(double inputs, absl::Span<const int32_t> widths);
double LstmMultiplications(double inputs, double steps, double width, double layers);
// plain: attention by content alone; else also by distance, which adds two products of its size.
double TransformerMultiplications(double steps, double width, double feedforward, double layers,
                                  bool plain);
// blocks: of each stage; a stage has twice the channels of the one before, at half the size.
double CnnMultiplications(double size, double width, absl::Span<const int32_t> blocks);
// voxels: of a patch. axes: along which its kernels reach, 3, or 2 for patches of one slice.
double Unet3dMultiplications(double voxels, double channels, double base, int levels, int axes);

// The work of an epoch over all training rows of a Job.
struct EpochWork {
  double bytes = 0;            // of the table that is read
  double samples = 0;          // rows, images, texts or patches
  double multiplications = 0;  // of a forward pass over one sample
  double views = 1;            // forward passes that a prediction makes of a sample
};

// For one fold on one core. Every figure is above 0.
Measured GuessSpeed(const EpochWork& work);

}  // namespace traind
