// Images stored as one array of numbers, as numpy saves it.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>

#include <cstdint>
#include <optional>
#include <string>

#include "common/data/image/image.h"
#include "common/data/table/npy.h"

namespace traind {

// Which axis of a four-dimensional array holds the channels.
enum class ImageLayout { kAuto, kChannelsLast, kChannelsFirst };

// The values of black and white. They become 0 and 255, and values between them are scaled and
// rounded.
struct ValueRange {
  double black = 0, white = 255;
};

struct ImageArrayShape {
  int64_t images = 0, height = 0, width = 0;
  int64_t channels = 1;  // 1 or 3
  bool channels_first = false;
};

// Reads the shape from a header. [N, H, W] is grey; [N, H, W, C] and [N, C, H, W] are told apart by
// the only axis of length 1 or 3. name: what errors call the array. InvalidArgument: another number
// of axes, no such axis, two such axes where the layout does not decide, no image, images of absurd
// size, or values that are not numbers.
absl::StatusOr<ImageArrayShape> ImageArrayShapeOf(const NpyHeader& header, ImageLayout layout,
                                                  const std::string& name);

// A view of such an array that reads single images.
// Threads: immutable. Ownership: the bytes are the caller's.
class ImageArray {
 public:
  // bytes: a whole NPY file, in C or Fortran order, of integers, bool, float32 or float64. range:
  // nullopt means the type's own range: 0 to 1 for floats and bool, 0 to 65535 for uint16, else 0
  // to 255. InvalidArgument: as ImageArrayShapeOf; the file is cut.
  static absl::StatusOr<ImageArray> Open(absl::string_view bytes, ImageLayout layout,
                                         std::optional<ValueRange> range, const std::string& name);

  const ImageArrayShape& shape() const { return shape_; }
  // The given range, else the type's own. Values beyond a given range are clipped.
  const ValueRange& range() const { return range_; }
  // Whether 8-bit pixels distinguish fewer values than the type does.
  bool coarse() const { return coarse_ && !given_; }
  // Reads one image and widens `extent` to its values. InvalidArgument (the message is meant to
  // follow the image's name): a value is not a number, or lies outside a range that was not given
  // explicitly. REQUIRES: 0 <= at < shape().images.
  absl::StatusOr<Image> Read(int64_t at, ValueRange& extent) const;

 private:
  using Reader = absl::Status (*)(const ImageArray&, const char*, uint8_t*, ValueRange&);
  struct Type;

  ImageArray() = default;
  static const Type* TypeOf(absl::string_view dtype);
  template <class T>
  static absl::Status ReadAs(const ImageArray& array, const char* first, uint8_t* out,
                             ValueRange& extent);
  absl::Status WrongValue(double value, int64_t pixel) const;

  friend absl::StatusOr<ImageArrayShape> ImageArrayShapeOf(const NpyHeader& header,
                                                           ImageLayout layout,
                                                           const std::string& name);

  ImageArrayShape shape_;
  ValueRange range_;
  bool given_ = false;
  bool coarse_ = false;
  const char* data_ = nullptr;
  Reader reader_ = nullptr;
  // Strides in bytes.
  int64_t image_step_ = 0, row_step_ = 0, column_step_ = 0, channel_step_ = 0;
};

}  // namespace traind
