#include "common/data/volume/turned_reader.h"

#include <utility>
#include <vector>

#include "common/base/status_macros.h"

namespace traind {
namespace {

class TurnedReader final : public VolumeReader {
 public:
  TurnedReader(std::unique_ptr<VolumeReader> reader, const Orientation& orientation,
               std::string scratch)
      : VolumeReader(""),
        reader_(std::move(reader)),
        orientation_(orientation),
        scratch_(std::move(scratch)) {
    shape_ = orientation.ShapeOf(reader_->shape());
    type_ = reader_->type();
    geometry_ = reader_->geometry();
    slice_.resize(static_cast<size_t>(reader_->shape().slice()));
  }

 protected:
  absl::Status Decode(int64_t z, absl::Span<float> out) override {
    if (turner_ == nullptr) RETURN_IF_ERROR(Begin());
    if (orientation_.keeps_slices()) RETURN_IF_ERROR(Pass(z));
    turner_->Read(z, reinterpret_cast<char*>(out.data()));
    return absl::OkStatus();
  }

 private:
  absl::Status Begin() {
    const auto voxel_bytes = static_cast<size_t>(shape_.channels) * sizeof(float);
    ASSIGN_OR_RETURN(std::unique_ptr<SliceTurner> turner,
                     SliceTurner::Create(reader_->shape(), orientation_, voxel_bytes, scratch_));
    turner_ = std::move(turner);
    if (orientation_.keeps_slices()) return absl::OkStatus();
    absl::Status status;
    for (int64_t z = 0; z < reader_->shape().depth && status.ok(); ++z) status = Pass(z);
    if (!status.ok()) turner_ = nullptr;
    return status;
  }
  absl::Status Pass(int64_t z) {
    RETURN_IF_ERROR(reader_->ReadSlice(z, absl::MakeSpan(slice_)));
    turner_->Put(z, reinterpret_cast<const char*>(slice_.data()));
    return absl::OkStatus();
  }

  const std::unique_ptr<VolumeReader> reader_;
  const Orientation orientation_;
  const std::string scratch_;
  std::unique_ptr<SliceTurner> turner_;
  std::vector<float> slice_;  // of the file
};

}  // namespace

std::unique_ptr<VolumeReader> TurnedVolume(std::unique_ptr<VolumeReader> reader,
                                           const Orientation& orientation, std::string scratch) {
  if (!orientation.turned()) return reader;
  return std::make_unique<TurnedReader>(std::move(reader), orientation, std::move(scratch));
}

}  // namespace traind
