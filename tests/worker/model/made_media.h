// Media for tests that need no files.
#pragma once

#include <cmath>
#include <cstdint>
#include <functional>
#include <numeric>
#include <utility>
#include <vector>

#include "worker/data/media_source.h"

namespace traind {

// Texts from half of `most` tokens to all of them, of a vocabulary of 100.
class MadeTexts final : public MediaSource {
 public:
  explicit MadeTexts(int32_t most) : most_(most) {}

  absl::Status Load(const MediaRequest& request, MediaBatch& out) const override {
    out = MediaBatch();
    for (const int32_t row : request.rows) {
      const int32_t length = most_ / 2 + row * 37 % (most_ / 2);
      for (int32_t i = 0; i < length; ++i) out.tokens.push_back((row + i * i) % 100);
      out.ends.push_back(static_cast<int32_t>(out.tokens.size()));
    }
    return absl::OkStatus();
  }

 private:
  const int32_t most_;
};

// Distinct patches of volumes with masks, or distinct images.
class MadeImages final : public MediaSource {
 public:
  explicit MadeImages(std::vector<int64_t> image) : image_(std::move(image)) {}

  absl::Status Load(const MediaRequest& request, MediaBatch& out) const override {
    const auto rows = static_cast<int64_t>(request.rows.size());
    const int64_t voxels =
        std::accumulate(image_.begin() + 1, image_.end(), int64_t{1}, std::multiplies<int64_t>());
    out = MediaBatch();
    out.shape = {rows};
    out.shape.insert(out.shape.end(), image_.begin() + 1, image_.end());
    out.shape.push_back(image_[0]);
    for (const int32_t row : request.rows) {
      for (int64_t i = 0; i < voxels * image_[0]; ++i) {
        out.values.push_back(std::sin(static_cast<float>(i * (row % 7 + 3))));
      }
      for (int64_t i = 0; i < voxels; ++i) {
        out.target.push_back(static_cast<float>((i / 5 + row) % 3));
      }
    }
    if (image_.size() < 4) return absl::OkStatus();
    out.target_shape = {rows, 1, image_[1], image_[2], image_[3]};
    return absl::OkStatus();
  }

 private:
  const std::vector<int64_t> image_;  // see ModelShape
};

}  // namespace traind
