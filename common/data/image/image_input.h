// The images of a data file of any form: a folder of image files, a table that names them, or an
// array of pixels.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <absl/types/span.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/data/image/image_fields.h"
#include "common/data/table/table_source.h"

namespace traind {

// The use of the images. Training images have labels: class folders, or an array's labels.
enum class ImagePart { kTrain, kTest, kLater };

struct ImageInputOptions {
  ImageFields fields;
  ImagePart part = ImagePart::kTrain;
  // Column names for the labels; folders of classes use only the first.
  std::vector<std::string> targets;
  int threads = 1;
  std::string scratch = {};  // a folder for scratch files
};

// The result of reading some images.
struct ImagesRead {
  // [images]: "NAME reason" for each image that could not be read; empty for the others.
  std::vector<std::string> errors;
  std::vector<std::string> warnings;
};

// One part's images and the table that describes them.
// Threads: immutable.
class ImageInput {
 public:
  // Errors: NotFound and the like from opening; InvalidArgument: no images, missing labels where
  // they are needed, a number of labels other than that of images, or an array that ImageArray
  // refuses.
  static absl::StatusOr<std::unique_ptr<ImageInput>> Open(const std::string& path,
                                                          ImageInputOptions options);
  virtual ~ImageInput() = default;

  // A table with a row for each image. Its column fields.column names the image for Read(): the
  // file, or the number in the array. Valid as long as this object.
  virtual CsvFile table() const = 0;
  // SHA-256, in hex, of everything besides the bytes of table(), size and channels that determines
  // the pixels. InvalidArgument: the table lacks the column.
  virtual absl::StatusOr<std::string> Digest() const = 0;
  // out: [names, size, size, channels]; zeros where an image cannot be read. REQUIRES: names come
  // from table()'s column.
  virtual ImagesRead Read(absl::Span<const std::string> names, absl::Span<uint8_t> out) const = 0;
  // InvalidArgument: a file has changed since it was opened.
  virtual absl::Status CheckUnchanged() const = 0;

  // Warnings from opening.
  const std::vector<std::string>& warnings() const { return warnings_; }

 protected:
  explicit ImageInput(ImageInputOptions options) : options_(std::move(options)) {}

  const ImageInputOptions options_;
  std::vector<std::string> warnings_;
};

// Opens an array of images as an ImageInput.
absl::StatusOr<std::unique_ptr<ImageInput>> OpenImageArrays(const std::string& path,
                                                            ImageInputOptions options);

// Counts images that cannot be read. A few of them are tolerated.
// Threads: confined to one.
class UnreadableImages {
 public:
  void Add(const std::string& error);
  int64_t count() const { return count_; }
  // Returns the warning to give, "FILE: 2 of 60 images cannot be read: ...". InvalidArgument, with
  // the same text: all are unreadable, or more than one and more than a twentieth of `images`.
  // REQUIRES: count() > 0.
  absl::StatusOr<std::string> CheckTolerable(const std::string& file, int64_t images) const;

 private:
  int64_t count_ = 0;
  std::vector<std::string> named_;
};

}  // namespace traind
