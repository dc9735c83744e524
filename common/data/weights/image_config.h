// The images that a pretrained network takes, from its config.json as timm writes it.
#pragma once

#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>

#include <array>

namespace traind {

struct ImageConfig {
  // Statistics of the pixels per channel (red, green, blue); black is 0, white is 1. Where the file
  // says nothing they are those of ImageNet.
  std::array<double, 3> mean{0.485, 0.456, 0.406};
  std::array<double, 3> deviation{0.229, 0.224, 0.225};
  int size = 224;  // pixels per side of its images
};

// json: the content of a config.json, whose `pretrained_cfg` tells input_size, mean and std.
// architecture: what the spec says.
// Errors: InvalidArgument names the key and what is wrong with it: another architecture, a size
// that data.image.size cannot have, numbers that scale no pixels.
absl::StatusOr<ImageConfig> ParseImageConfig(absl::string_view architecture,
                                             absl::string_view json);

}  // namespace traind
