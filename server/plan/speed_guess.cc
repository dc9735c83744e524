#include "server/plan/speed_guess.h"

#include <algorithm>
#include <cmath>

namespace traind {
namespace {

// The speed of a core without bf16 with MLPs and LSTMs (docs/BENCHMARKS.md, machine A).
constexpr double kFlopsPerSecond = 5e10;
// Gathering rows and all that a step costs besides its products.
constexpr double kBytesPerSecond = 2e7;
// A training step is a forward pass and a backward pass of twice its size; each multiplication
// comes with an addition.
constexpr double kTrainingFlops = 6, kForwardFlops = 2;
constexpr double kLeastEpochSeconds = 0.02;
constexpr int64_t kSteps = 50;  // of an epoch

}  // namespace

double MlpMultiplications(double inputs, absl::Span<const int32_t> widths) {
  double sum = 0;
  for (const int32_t width : widths) {
    sum += inputs * width;
    inputs = width;
  }
  return sum;
}

double LstmMultiplications(double inputs, double steps, double width, double layers) {
  const double first = 4 * width * (inputs + width), later = 4 * width * (width + width);
  return steps * (first + (layers - 1) * later);
}

double TransformerMultiplications(double steps, double width, double feedforward, double layers,
                                  bool plain) {
  const double products = 4 * width * width + 2 * width * feedforward;
  const double attention = (plain ? 2 : 4) * steps * width;
  return steps * layers * (products + attention);
}

double CnnMultiplications(double size, double width, absl::Span<const int32_t> blocks) {
  constexpr double kConvolutions = 2, kTaps = 9;  // of a block; of a convolution
  double count = 0;
  for (const int32_t of_stage : blocks) count += of_stage;
  // Twice the channels at half the size: each stage's blocks cost the same.
  return count * kConvolutions * kTaps * width * width * size * size;
}

double Unet3dMultiplications(double voxels, double channels, double base, int levels, int axes) {
  const double taps = std::pow(3, axes);
  double sum = 0, in = channels, out = base;
  for (int level = 0; level < levels; ++level) {
    const double down = in * out + out * out;
    // On the way up the level's own answers and those from below come together.
    const double up = level + 1 < levels ? 2 * out * out + out * out : 0;
    sum += taps * voxels * (down + up);
    voxels /= std::exp2(axes);
    in = out;
    out *= 2;
  }
  return sum;
}

Measured GuessSpeed(const EpochWork& work) {
  const double forward_s = kForwardFlops * work.samples * work.multiplications / kFlopsPerSecond;
  const double epoch_s = work.bytes / kBytesPerSecond + kTrainingFlops / kForwardFlops * forward_s;
  Measured guess;
  guess.epoch_s = std::max(kLeastEpochSeconds, epoch_s);
  guess.steps_per_epoch = kSteps;
  guess.step_s = guess.step_p90_s = guess.epoch_s / static_cast<double>(kSteps);
  guess.evaluate_s = work.views * guess.epoch_s / 10;
  guess.predict_s = work.views * guess.epoch_s / 5;
  return guess;
}

}  // namespace traind
