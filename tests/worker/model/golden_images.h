// The images of tests/golden/resnet_golden.py, of which each class has some.
#pragma once

#include <absl/status/status.h>

#include <atomic>
#include <cstdint>
#include <vector>

#include "tests/worker/model/resnet_weights.h"
#include "worker/data/media_source.h"

namespace traind {

constexpr int64_t kGoldenImages = 4, kGoldenSide = 65;

// Counts the images that are asked for.
class GoldenImages final : public MediaSource {
 public:
  absl::Status Load(const MediaRequest& request, MediaBatch& out) const override {
    static const std::vector<double>& all =
        *new std::vector<double>(Drawn("images", kGoldenImages * kPixels));
    out.shape = {static_cast<int64_t>(request.rows.size()), kGoldenSide, kGoldenSide, 3};
    out.values.clear();
    for (const int32_t row : request.rows) {
      const auto begin = all.begin() + row % kGoldenImages * kPixels;
      out.values.insert(out.values.end(), begin, begin + kPixels);
    }
    loaded_ += static_cast<int64_t>(request.rows.size());
    return absl::OkStatus();
  }

  int64_t loaded() const { return loaded_; }

 private:
  static constexpr int64_t kPixels = kGoldenSide * kGoldenSide * 3;
  mutable std::atomic<int64_t> loaded_ = 0;
};

}  // namespace traind
