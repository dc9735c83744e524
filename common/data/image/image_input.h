// The images of a data file, whatever it is: a folder of image files, a table that names them, or
// an array of pixels.
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

// What the images are for. Training ones have labels: folders of classes, or those of an array.
enum class ImagePart { kTrain, kTest, kLater };

struct ImageInputOptions {
  ImageFields fields;
  ImagePart part = ImagePart::kTrain;
  // What labels are called as columns; of folders of classes the first alone.
  std::vector<std::string> targets;
  int threads = 1;
};

// What was read of some images.
struct ImagesRead {
  // [images]: why one could not be read, "NAME what"; empty where it could be.
  std::vector<std::string> errors;
  std::vector<std::string> warnings;
};

// Threads: immutable. Rows that the table has are read from it by others.
class ImageInput {
 public:
  // Errors: NotFound and the like of opening; InvalidArgument: no images, no labels where they
  // are needed, as many labels as there are not images, an array that ImageArray refuses.
  static absl::StatusOr<std::unique_ptr<ImageInput>> Open(const std::string& path,
                                                          ImageInputOptions options);
  virtual ~ImageInput() = default;

  // A row for each image, with fields.column, which names it for Read(): the file, or the number
  // in the array. Valid as long as this.
  virtual CsvFile table() const = 0;
  // Digest, in hex, of all that decides the pixels besides the bytes of table(), size and
  // channels. InvalidArgument: the table lacks the column.
  virtual absl::StatusOr<std::string> Digest() const = 0;
  // out: [names, size, size, channels]; zeros where an image cannot be read. REQUIRES: names are
  // of table()'s column.
  virtual ImagesRead Read(absl::Span<const std::string> names, absl::Span<uint8_t> out) const = 0;
  // InvalidArgument: a file is not as it was when it was opened.
  virtual absl::Status CheckUnchanged() const = 0;

  // Of opening.
  const std::vector<std::string>& warnings() const { return warnings_; }

 protected:
  explicit ImageInput(ImageInputOptions options) : options_(std::move(options)) {}

  const ImageInputOptions options_;
  std::vector<std::string> warnings_;
};

// What an ImageInput is where the file is an array.
absl::StatusOr<std::unique_ptr<ImageInput>> OpenImageArrays(const std::string& path,
                                                            ImageInputOptions options);

// Images that cannot be read: a few may be left out.
class UnreadableImages {
 public:
  void Add(const std::string& error);
  int64_t count() const { return count_; }
  // What to tell of them, "FILE: 2 of 60 images cannot be read: ...". InvalidArgument, with the
  // same words: they are more than a twentieth of `images` and more than one, or all.
  // REQUIRES: count() > 0.
  absl::StatusOr<std::string> Judge(const std::string& file, int64_t images) const;

 private:
  int64_t count_ = 0;
  std::vector<std::string> named_;
};

}  // namespace traind
