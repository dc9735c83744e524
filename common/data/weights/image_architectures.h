// The networks for images that have names, as timm makes them.
#pragma once

#include <absl/strings/string_view.h>
#include <absl/types/span.h>

#include <array>
#include <cstdint>

namespace traind {

enum class ImageFamily {
  kResnet,            // He, Zhang, Ren, Sun 2015: blocks of two 3x3 convolutions
  kBottleneckResnet,  // blocks of three convolutions, the middle one 3x3 and with the stride
  kVit,               // Dosovitskiy and others 2021
  kConvnext,          // Liu and others 2022
  kSmallConvnext,     // the same; the two layers of a block are stored as 1x1 convolutions
  kEfficientnet,      // Tan, Le 2019
};

struct ImageArchitecture {
  const char* name;
  ImageFamily family;
  int32_t width;                  // channels of the first stage, or of every token
  std::array<int32_t, 7> blocks;  // of each stage; 0: there is no such stage
  // What the names of those parameters begin with that a file need not have, because classes
  // differ.
  const char* last_layer;
  double multiplications;  // of a forward pass over an image of 224 x 224 pixels
  int32_t multiple;        // the sides of images are multiples of it

  absl::Span<const int32_t> stages() const {
    size_t count = 0;
    while (count < blocks.size() && blocks[count] > 0) ++count;
    return absl::MakeConstSpan(blocks).first(count);
  }
};

// Names, widths and blocks are timm's; the multiplications are the papers' or torchvision's.
inline constexpr std::array<ImageArchitecture, 11> kImageArchitectures = {{
    {"resnet18", ImageFamily::kResnet, 64, {2, 2, 2, 2}, "fc.", 1.81e9, 1},
    {"resnet34", ImageFamily::kResnet, 64, {3, 4, 6, 3}, "fc.", 3.66e9, 1},
    {"resnet50", ImageFamily::kBottleneckResnet, 64, {3, 4, 6, 3}, "fc.", 4.09e9, 1},
    {"resnet101", ImageFamily::kBottleneckResnet, 64, {3, 4, 23, 3}, "fc.", 7.80e9, 1},
    {"vit_tiny_patch16_224", ImageFamily::kVit, 192, {12}, "head.", 1.08e9, 16},
    {"vit_small_patch16_224", ImageFamily::kVit, 384, {12}, "head.", 4.25e9, 16},
    {"vit_base_patch16_224", ImageFamily::kVit, 768, {12}, "head.", 16.9e9, 16},
    {"convnext_atto", ImageFamily::kSmallConvnext, 40, {2, 2, 6, 2}, "head.fc.", 0.55e9, 1},
    {"convnext_nano", ImageFamily::kSmallConvnext, 80, {2, 2, 8, 2}, "head.fc.", 2.46e9, 1},
    {"convnext_tiny", ImageFamily::kConvnext, 96, {3, 3, 9, 3}, "head.fc.", 4.46e9, 1},
    {"efficientnet_b0",
     ImageFamily::kEfficientnet,
     32,
     {1, 2, 2, 3, 3, 4, 1},
     "classifier.",
     0.39e9,
     1},
}};

// Null: there is no such architecture.
inline const ImageArchitecture* FindImageArchitecture(absl::string_view name) {
  for (const ImageArchitecture& architecture : kImageArchitectures) {
    if (name == architecture.name) return &architecture;
  }
  return nullptr;
}

}  // namespace traind
