// Images that are one array of numbers, as numpy saves it.
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

// Which axis has the channels of an array of four.
enum class ImageLayout { kAuto, kChannelsLast, kChannelsFirst };

// Values that are black and white: they become 0 and 255, what lies between in proportion,
// rounded.
struct ValueRange {
  double black = 0, white = 255;
};

struct ImageArrayShape {
  int64_t images = 0, height = 0, width = 0;
  int64_t channels = 1;  // 1 or 3
  bool channels_first = false;
};

// What a header says: [N, H, W] is grey, [N, H, W, C] and [N, C, H, W] are told apart by the one
// axis that is 1 or 3 long. name: what errors call the array.
// InvalidArgument: another number of axes, no or two such axes where the layout does not say
// which it is, no image, an image of absurd size, values that are no numbers.
absl::StatusOr<ImageArrayShape> ImageArrayShapeOf(const NpyHeader& header, ImageLayout layout,
                                                  const std::string& name);

// Threads: immutable. Ownership: the bytes are the caller's.
class ImageArray {
 public:
  // bytes: of a whole NPY file, in C or Fortran order, of integers, bool, float32 or float64.
  // range: none for the type's own: 0 to 1 of floats and bool, 0 to 65535 of uint16, else 0 to
  // 255. InvalidArgument: as ImageArrayShapeOf; the file is cut.
  static absl::StatusOr<ImageArray> Open(absl::string_view bytes, ImageLayout layout,
                                         std::optional<ValueRange> range, const std::string& name);

  const ImageArrayShape& shape() const { return shape_; }
  // Of the range that the type has by itself; beyond a given one values are cut off.
  const ValueRange& range() const { return range_; }
  // Whether pixels of 256 steps tell fewer values apart than the type does.
  bool coarse() const { return coarse_ && !given_; }
  // extent: widened by what the image has. InvalidArgument, going on from the image's name: a
  // value is no number, or lies outside of a range that was not given.
  // REQUIRES: 0 <= at < shape().images.
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
  // In bytes, from one to the next.
  int64_t image_step_ = 0, row_step_ = 0, column_step_ = 0, channel_step_ = 0;
};

}  // namespace traind
