// Implements ImageInput for arrays of images and their labels.
#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "common/base/durable_file.h"
#include "common/base/status_macros.h"
#include "common/data/image/image.h"
#include "common/data/image/image_input.h"
#include "common/data/image/on_threads.h"
#include "common/data/table/array_file.h"
#include "common/data/table/array_member.h"
#include "common/data/table/csv.h"
#include "common/data/table/feature_reader.h"
#include "common/data/table/mapped_file.h"

namespace traind {
namespace {

// A warning is given for pixels that use a smaller share of their range.
constexpr double kSmallShare = 0.125;
constexpr size_t kRowsAtOnce = 16384;

std::string BaseName(const std::string& path) { return path.substr(path.rfind('/') + 1); }

// The names by which members are looked for: the spec's, else the usual ones.
std::vector<std::string> Named(const std::string& given, std::vector<std::string> usual) {
  return given.empty() ? std::move(usual) : std::vector<std::string>{given};
}

class ArrayImages final : public ImageInput {
 public:
  explicit ArrayImages(ImageInputOptions options) : ImageInput(std::move(options)) {}
  absl::Status Open(const std::string& path);

  CsvFile table() const override { return {name_, manifest_}; }
  absl::StatusOr<std::string> Digest() const override { return digest_; }
  ImagesRead Read(absl::Span<const std::string> names, absl::Span<uint8_t> out) const override;
  absl::Status CheckUnchanged() const override {
    if (labels_file_ != nullptr) RETURN_IF_ERROR(labels_file_->CheckUnchanged());
    return file_->CheckUnchanged();
  }

 private:
  absl::StatusOr<ArrayMember> FindImages();
  absl::Status MakeTable();
  absl::Status AddLabels(const CsvFile& labels, absl::string_view of_array);
  absl::Status CheckColumns(const std::vector<std::string>& header, const std::string& labels,
                            bool from_array, std::vector<std::string>& columns) const;
  bool training() const { return options_.part == ImagePart::kTrain; }

  std::unique_ptr<MappedFile> file_, labels_file_;
  std::string unpacked_;
  std::string name_;
  std::string manifest_, digest_;
  std::optional<ImageArray> array_;
};

absl::StatusOr<ArrayMember> ArrayImages::FindImages() {
  const ImageFields& fields = options_.fields;
  std::vector<std::string> names;
  if (training()) {
    names = Named(fields.train_array, {"x_train", "train_images", "x", "images"});
  } else if (options_.part == ImagePart::kTest) {
    names = Named(fields.test_array, {"x_test", "test_images", "x", "images"});
  } else {
    names = Named(fields.test_array, {"x", "images", "x_test", "test_images"});
  }
  absl::StatusOr<ArrayMember> found = FindArray(file_->bytes(), name_, names, unpacked_);
  if (!absl::IsNotFound(found.status())) return found;
  return absl::InvalidArgumentError(
      absl::StrCat(found.status().message(), " (",
                   training() ? "data.image.train_array" : "data.image.test_array", ")"));
}

absl::Status ArrayImages::Open(const std::string& path) {
  name_ = BaseName(path);
  ASSIGN_OR_RETURN(file_, MappedFile::Open(path, MapUse::kStream));
  ASSIGN_OR_RETURN(const ArrayMember member, FindImages());
  ASSIGN_OR_RETURN(array_, ImageArray::Open(member.bytes, options_.fields.layout,
                                            options_.fields.range, member.name));
  const ValueRange& range = array_->range();
  digest_ = absl::StrCat("array ", array_->shape().channels_first, " ", range.black, " ",
                         range.white, " ", Sha256Hex(member.bytes));
  return MakeTable();
}

// Makes a table with a row for each image: its number, and its labels if there are any.
absl::Status ArrayImages::MakeTable() {
  const ImageFields& fields = options_.fields;
  const std::string& path = training() ? fields.labels : fields.test_labels;
  if (options_.part != ImagePart::kLater && !path.empty()) {
    ASSIGN_OR_RETURN(labels_file_, MappedFile::Open(path));
    const CsvFile labels = {BaseName(path), labels_file_->bytes()};
    if (!IsArrayFile(labels.bytes)) return AddLabels(labels, "");
  }
  std::string unpacked;
  const std::vector<std::string> names =
      training() ? Named(fields.labels_array, {"y_train", "train_labels", "y", "labels"})
                 : Named(fields.test_labels_array, {"y_test", "test_labels", "y", "labels"});
  const MappedFile& file = labels_file_ != nullptr ? *labels_file_ : *file_;
  const bool archive = file_->bytes()[0] == 'P';
  absl::StatusOr<ArrayMember> found = absl::NotFoundError(
      absl::StrCat(name_, " has no labels: data.image.labels names a file that has them"));
  if (options_.part != ImagePart::kLater && (archive || labels_file_ != nullptr)) {
    found =
        FindArray(file.bytes(), labels_file_ == nullptr ? name_ : BaseName(path), names, unpacked);
  }
  if (absl::IsNotFound(found.status())) {
    const bool wanted = labels_file_ != nullptr ||
                        !(training() ? fields.labels_array : fields.test_labels_array).empty();
    if (training() || (wanted && options_.part == ImagePart::kTest)) {
      return absl::InvalidArgumentError(found.status().message());
    }
    manifest_ = absl::StrCat(CsvField(fields.column), "\n");
    for (int64_t i = 0; i < array_->shape().images; ++i) absl::StrAppend(&manifest_, i, "\n");
    return absl::OkStatus();
  }
  RETURN_IF_ERROR(found.status());
  return AddLabels({found->name, found->bytes}, found->name);
}

absl::Status ArrayImages::CheckColumns(const std::vector<std::string>& header,
                                       const std::string& labels, bool from_array,
                                       std::vector<std::string>& columns) const {
  columns = {options_.fields.column};
  if (from_array) {
    if (header.size() != options_.targets.size()) {
      return absl::InvalidArgumentError(absl::StrCat(
          labels, " has ", header.size(), " columns for ", options_.targets.size(),
          options_.targets.size() == 1 ? " target; of one-hot rows numpy.argmax(y, axis=1) makes "
                                         "labels"
                                       : " targets"));
    }
    columns.insert(columns.end(), options_.targets.begin(), options_.targets.end());
    return absl::OkStatus();
  }
  if (std::find(header.begin(), header.end(), columns[0]) != header.end()) {
    return absl::InvalidArgumentError(
        absl::StrCat(labels, " has a column '", columns[0],
                     "', which is the number of the image; data.image.column names another"));
  }
  columns.insert(columns.end(), header.begin(), header.end());
  return absl::OkStatus();
}

// of_array: the name of the array that holds the labels; empty where they are a table.
absl::Status ArrayImages::AddLabels(const CsvFile& labels, absl::string_view of_array) {
  ASSIGN_OR_RETURN(const CsvText text, OpenDataFile(labels, warnings_));
  std::vector<std::string> columns;
  RETURN_IF_ERROR(CheckColumns(text.header, labels.name, !of_array.empty(), columns));
  for (size_t i = 0; i < columns.size(); ++i) {
    absl::StrAppend(&manifest_, i == 0 ? "" : ",", CsvField(columns[i]));
  }
  manifest_ += '\n';
  BlockReader blocks(text);
  CsvRows block;
  int64_t rows = 0;
  do {
    block.Clear();
    RETURN_IF_ERROR(blocks.Next(kRowsAtOnce, block));
    const absl::string_view* field = block.fields();
    for (size_t i = 0; i < block.rows(); ++i) {
      absl::StrAppend(&manifest_, rows++);
      for (size_t k = 1; k < columns.size(); ++k, ++field) {
        absl::StrAppend(&manifest_, ",", CsvField(*field));
      }
      manifest_ += '\n';
    }
  } while (block.rows() == kRowsAtOnce);
  if (rows == array_->shape().images) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(labels.name, " has ", rows, " rows of labels, ",
                                                 name_, " has ", array_->shape().images,
                                                 " images"));
}

ImagesRead ArrayImages::Read(absl::Span<const std::string> names, absl::Span<uint8_t> out) const {
  const int64_t size = options_.fields.size, channels = options_.fields.channels;
  const int64_t stride = size * size * channels;
  constexpr double kNone = std::numeric_limits<double>::infinity();
  std::vector<ValueRange> extents(names.size(), {kNone, -kNone});
  ImagesRead result;
  result.errors.resize(names.size());
  ForEachOnThreads(static_cast<int64_t>(names.size()), options_.threads, [&](int64_t i) {
    const auto at = static_cast<size_t>(i);
    int64_t number = -1;
    if (!absl::SimpleAtoi(names[at], &number) || number < 0 || number >= array_->shape().images) {
      result.errors[at] = absl::StrCat("image ", names[at], " is not in the array");
      std::fill_n(out.data() + i * stride, stride, uint8_t{0});
      return;
    }
    const absl::StatusOr<Image> image = array_->Read(number, extents[at]);
    if (!image.ok()) {
      result.errors[at] = absl::StrCat("image ", number, " ", image.status().message());
      std::fill_n(out.data() + i * stride, stride, uint8_t{0});
      return;
    }
    const Image square = CropAndResize(WithChannels(*image, channels), size);
    std::copy(square.pixels.begin(), square.pixels.end(), out.data() + i * stride);
  });
  ValueRange all = {kNone, -kNone};
  for (const ValueRange& extent : extents) {
    all = {std::min(all.black, extent.black), std::max(all.white, extent.white)};
  }
  const ValueRange& range = array_->range();
  if (array_->coarse() && all.white > all.black &&
      all.white - all.black < kSmallShare * (range.white - range.black)) {
    result.warnings.push_back(absl::StrCat(name_, ": pixels range from ", all.black, " to ",
                                           all.white, " of ", range.black, " to ", range.white,
                                           ", in 256 steps; set data.image.black and "
                                           "data.image.white to distinguish them better"));
  }
  return result;
}

}  // namespace

absl::StatusOr<std::unique_ptr<ImageInput>> OpenImageArrays(const std::string& path,
                                                            ImageInputOptions options) {
  auto images = std::make_unique<ArrayImages>(std::move(options));
  RETURN_IF_ERROR(images->Open(path));
  return std::unique_ptr<ImageInput>(std::move(images));
}

}  // namespace traind
