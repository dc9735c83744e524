// The ResNets that have names (He, Zhang, Ren, Sun 2015), as torchvision and timm make them.
#pragma once

#include <absl/strings/string_view.h>

#include <array>
#include <cstdint>

namespace traind {

struct ResnetSizes {
  const char* architecture;
  std::array<int32_t, 4> blocks;  // of each stage
  // Blocks of three convolutions whose middle one is 3x3 and has the stride, and whose output has
  // four times the stage's channels; else blocks of two 3x3 convolutions.
  bool bottleneck;
  double multiplications;  // of a forward pass over an image of 224 x 224 pixels
};

inline constexpr int32_t kResnetWidth = 64;  // channels of the first stage
inline constexpr std::array<ResnetSizes, 4> kResnets = {
    {{"resnet18", {2, 2, 2, 2}, false, 1.81e9},
     {"resnet34", {3, 4, 6, 3}, false, 3.66e9},
     {"resnet50", {3, 4, 6, 3}, true, 4.09e9},
     {"resnet101", {3, 4, 23, 3}, true, 7.80e9}}};

// Null: there is no such architecture.
inline const ResnetSizes* FindResnet(absl::string_view architecture) {
  for (const ResnetSizes& sizes : kResnets) {
    if (architecture == sizes.architecture) return &sizes;
  }
  return nullptr;
}

}  // namespace traind
