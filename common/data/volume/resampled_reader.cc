#include "common/data/volume/resampled_reader.h"

#include <algorithm>
#include <deque>
#include <optional>
#include <utility>

#include "common/base/status_macros.h"

namespace traind {
namespace {

class ResampledReader final : public VolumeReader {
 public:
  ResampledReader(std::unique_ptr<VolumeReader> reader, const VolumeShape& to, LowPass low_pass)
      : VolumeReader(""), reader_(std::move(reader)), low_pass_(low_pass) {
    shape_ = to;
    geometry_ = reader_->geometry();
    slice_.resize(static_cast<size_t>(reader_->shape().slice()));
  }

 protected:
  absl::Status Decode(int64_t z, absl::Span<float> out) override {
    if (!resampler_.has_value() || z < next_) Restart();
    while (z >= next_ + static_cast<int64_t>(ready_.size())) RETURN_IF_ERROR(ReadOne());
    for (; next_ < z; ++next_) ready_.pop_front();
    std::copy(ready_.front().begin(), ready_.front().end(), out.begin());
    while (z + 1 == shape_.depth && read_ < reader_->shape().depth) RETURN_IF_ERROR(ReadOne());
    return absl::OkStatus();
  }

 private:
  void Restart() {
    resampler_.emplace(reader_->shape(), shape_, shape_.channels, low_pass_);
    ready_.clear();
    next_ = read_ = 0;
  }
  absl::Status ReadOne() {
    RETURN_IF_ERROR(reader_->ReadSlice(read_++, absl::MakeSpan(slice_)));
    return resampler_->Add(slice_, [this](absl::Span<const float> slice) {
      ready_.emplace_back(slice.begin(), slice.end());
      return absl::OkStatus();
    });
  }

  const std::unique_ptr<VolumeReader> reader_;
  const LowPass low_pass_;
  std::optional<SliceResampler> resampler_;
  std::vector<float> slice_;              // of the file
  std::deque<std::vector<float>> ready_;  // resampled, from slice next_ on
  int64_t next_ = 0, read_ = 0;
};

}  // namespace

std::unique_ptr<VolumeReader> ResampledVolume(std::unique_ptr<VolumeReader> reader,
                                              const VolumeShape& to, LowPass low_pass) {
  return std::make_unique<ResampledReader>(std::move(reader), to, low_pass);
}

ResampledMask::ResampledMask(std::unique_ptr<MaskReader> reader, const VolumeShape& shape,
                             const VolumeShape& to)
    : reader_(std::move(reader)),
      from_(shape),
      to_(to),
      slice_(static_cast<size_t>(shape.height * shape.width)) {
  for (int64_t x = 0; x < to.width; ++x) {
    columns_.push_back(NearestPlaceOf(x, shape.width, to.width));
  }
}

absl::Status ResampledMask::ReadSlice(int64_t z, absl::Span<uint8_t> out) {
  if (from_ == to_) return reader_->ReadSlice(z, out);
  const int64_t nearest = NearestPlaceOf(z, from_.depth, to_.depth);
  if (nearest != held_) {  // a packed file would be unpacked from its beginning again
    held_ = -1;
    RETURN_IF_ERROR(reader_->ReadSlice(nearest, absl::MakeSpan(slice_)));
    held_ = nearest;
  }
  uint8_t* voxel = out.data();
  for (int64_t y = 0; y < to_.height; ++y) {
    const uint8_t* const row =
        slice_.data() + NearestPlaceOf(y, from_.height, to_.height) * from_.width;
    for (const int64_t x : columns_) *voxel++ = row[x];
  }
  return absl::OkStatus();
}

}  // namespace traind
