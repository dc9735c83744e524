#include "worker/prepare/image_media.h"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "common/base/container.h"
#include "common/base/job_layout.h"
#include "common/base/status_macros.h"
#include "common/data/image/image.h"
#include "common/data/image/image_cache.h"
#include "common/data/image/image_input.h"

namespace traind {
namespace {

constexpr int64_t kThumbnail = 8;
constexpr double kMostMemory = 0.4;  // fraction of the machine's memory

template <typename T>
void Keep(const std::vector<bool>& dropped, std::vector<T>& values) {
  if (values.empty()) return;
  size_t to = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    if (!dropped[i]) values[to++] = values[i];
  }
  values.resize(to);
}

void Keep(const std::vector<bool>& dropped, ColumnRows& column) {
  Keep(dropped, column.numbers);
  Keep(dropped, column.codes);
}

void Keep(const std::vector<bool>& dropped, TextRows& texts) {
  TextRows kept;
  for (size_t i = 0; i < texts.ends.size(); ++i) {
    if (!dropped[i]) kept.Add(texts[i]);
  }
  texts = std::move(kept);
}

// Index of a text column. REQUIRES: the table has it.
size_t TextColumn(const TableSchema& schema, const std::string& name) {
  const auto& columns = schema.text_columns;
  return static_cast<size_t>(std::find(columns.begin(), columns.end(), name) - columns.begin());
}

}  // namespace

void DropTrainRows(const std::vector<bool>& dropped, TableRows& rows) {
  rows.schema.train_rows -= std::count(dropped.begin(), dropped.end(), true);
  for (ColumnRows& column : rows.train) Keep(dropped, column);
  for (ColumnRows& column : rows.more_train_targets) Keep(dropped, column);
  for (TextRows& texts : rows.train_texts) Keep(dropped, texts);
  Keep(dropped, rows.train_target);
  Keep(dropped, rows.groups);
  Keep(dropped, rows.given_folds);
}

std::vector<FloorColumn> ImageFloorColumns(const std::vector<uint8_t>& pixels, int64_t size,
                                           int64_t channels) {
  const int64_t stride = size * size * channels;
  const int64_t images = static_cast<int64_t>(pixels.size()) / stride;
  std::vector<FloorColumn> columns;
  for (int64_t c = 0; c < channels; ++c) {
    columns.push_back({absl::StrCat("mean of channel ", c), {}});
    columns.push_back({absl::StrCat("deviation of channel ", c), {}});
  }
  for (int64_t i = 0; i < kThumbnail * kThumbnail; ++i) {
    columns.push_back({absl::StrCat("thumbnail ", i / kThumbnail, ",", i % kThumbnail), {}});
  }
  Image image{size, size, channels, std::vector<uint8_t>(static_cast<size_t>(stride))};
  for (int64_t k = 0; k < images; ++k) {
    std::copy_n(pixels.data() + k * stride, stride, image.pixels.data());
    size_t column = 0;
    for (int64_t c = 0; c < channels; ++c) {
      double sum = 0, squares = 0;
      for (int64_t i = c; i < stride; i += channels) {
        const double value = image.pixels[static_cast<size_t>(i)];
        sum += value;
        squares += value * value;
      }
      const double count = static_cast<double>(size * size), mean = sum / count;
      columns[column++].values.push_back(static_cast<float>(mean));
      columns[column++].values.push_back(
          static_cast<float>(std::sqrt(std::max(0.0, squares / count - mean * mean))));
    }
    const Image small = CropAndResize(WithChannels(image, 1), kThumbnail);
    for (const uint8_t value : small.pixels) columns[column++].values.push_back(value);
  }
  return columns;
}

namespace {

class ImageMedia final : public RowMedia {
 public:
  ImageMedia(const PrepareSpec& spec, int threads) : spec_(spec), threads_(threads) {}
  absl::Status Open();

  CsvFile train() const override { return Named(train_.get(), spec_.train); }
  CsvFile test() const override { return Named(test_.get(), spec_.test); }
  std::vector<std::string> text_columns() const override { return {spec_.image->column}; }
  std::string content() const override { return content_; }
  bool IsCached(const std::string& state_dir, const std::string& key) const override;
  absl::Status Add(const std::string& state_dir, const std::string& key,
                   TableRows& rows) const override;
  absl::Status CheckUnchanged() const override;

 private:
  absl::StatusOr<std::unique_ptr<ImageInput>> OpenPart(const std::string& path,
                                                       ImagePart part) const;
  CsvFile Named(const ImageInput* part, const std::string& path) const;
  // Appends the pixels of `count` rows. bad[row] becomes true for unreadable images.
  absl::Status ReadPart(const ImageInput& part, const TextRows& paths, size_t count,
                        std::vector<uint8_t>& pixels, std::vector<bool>& bad,
                        std::vector<std::string>& warnings) const;
  absl::Status CheckMemory(int64_t images) const;

  const PrepareSpec& spec_;
  const int threads_;
  std::unique_ptr<ImageInput> train_, test_;  // test_: null if there is no test file
  std::string content_;
};

absl::StatusOr<std::unique_ptr<ImageInput>> ImageMedia::OpenPart(const std::string& path,
                                                                 ImagePart part) const {
  ImageInputOptions options;
  options.fields = *spec_.image;
  options.part = part;
  options.targets = {spec_.target};
  options.targets.insert(options.targets.end(), spec_.more_targets.begin(),
                         spec_.more_targets.end());
  options.threads = threads_;
  options.scratch = spec_.scratch;
  return ImageInput::Open(path, std::move(options));
}

// If two files have the same name, their paths distinguish them.
CsvFile ImageMedia::Named(const ImageInput* part, const std::string& path) const {
  if (part == nullptr) return {};
  CsvFile table = part->table();
  if (test_ != nullptr && train_->table().name == test_->table().name) table.name = path;
  return table;
}

absl::Status ImageMedia::Open() {
  ASSIGN_OR_RETURN(train_, OpenPart(spec_.train, ImagePart::kTrain));
  ASSIGN_OR_RETURN(const std::string train, train_->Digest());
  std::string test;
  if (!spec_.test.empty()) {
    ASSIGN_OR_RETURN(test_, OpenPart(spec_.test, ImagePart::kTest));
    ASSIGN_OR_RETURN(test, test_->Digest());
  }
  content_ = absl::StrCat("images ", spec_.image->column, " ", spec_.image->size, " ",
                          spec_.image->channels, "\n", train, "\n", test);
  return absl::OkStatus();
}

bool ImageMedia::IsCached(const std::string& state_dir, const std::string& key) const {
  const auto cache = ImageCache::Open(absl::StrCat(state_dir, "/", ImageCachePath(key)));
  return cache.ok() && (*cache)->VerifyDigest().ok();
}

// Images are held in memory until they are written.
absl::Status ImageMedia::CheckMemory(int64_t images) const {
  const double bytes = static_cast<double>(images) * static_cast<double>(spec_.image->size) *
                       static_cast<double>(spec_.image->size * spec_.image->channels);
  const auto memory = static_cast<double>(UsableMemory());
  if (bytes <= memory * kMostMemory) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(images, " images of ", spec_.image->size, " x ",
                                                 spec_.image->size, " pixels need ",
                                                 static_cast<int64_t>(bytes / 1e6), " MB; at most ",
                                                 static_cast<int64_t>(memory * kMostMemory / 1e6),
                                                 " MB may be used: make data.image.size smaller"));
}

absl::Status ImageMedia::ReadPart(const ImageInput& part, const TextRows& paths, size_t count,
                                  std::vector<uint8_t>& pixels, std::vector<bool>& bad,
                                  std::vector<std::string>& warnings) const {
  const ImageFields& fields = *spec_.image;
  std::vector<std::string> names;
  for (size_t row = 0; row < count; ++row) names.emplace_back(paths[row]);
  const size_t begin = pixels.size();
  pixels.resize(begin + count * static_cast<size_t>(fields.size * fields.size * fields.channels));
  const ImagesRead read = part.Read(names, absl::MakeSpan(pixels).subspan(begin));
  warnings.insert(warnings.end(), part.warnings().begin(), part.warnings().end());
  warnings.insert(warnings.end(), read.warnings.begin(), read.warnings.end());
  UnreadableImages unreadable;
  bad.assign(count, false);
  for (size_t row = 0; row < count; ++row) {
    if (read.errors[row].empty()) continue;
    bad[row] = true;
    unreadable.Add(read.errors[row]);
  }
  if (unreadable.count() == 0) return absl::OkStatus();
  ASSIGN_OR_RETURN(std::string told,
                   unreadable.CheckTolerable(part.table().name, static_cast<int64_t>(count)));
  warnings.push_back(std::move(told));
  return absl::OkStatus();
}

absl::Status ImageMedia::Add(const std::string& state_dir, const std::string& key,
                             TableRows& rows) const {
  TableSchema& schema = rows.schema;
  RETURN_IF_ERROR(CheckMemory(schema.train_rows + schema.test_rows));
  const size_t column = TextColumn(schema, spec_.image->column);
  std::vector<uint8_t> pixels, test_pixels;
  std::vector<bool> bad, bad_test;
  RETURN_IF_ERROR(ReadPart(*train_, rows.train_texts[column],
                           static_cast<size_t>(schema.train_rows), pixels, bad, schema.warnings));
  if (std::count(bad.begin(), bad.end(), true) > 0 && schema.ordered) {
    return absl::InvalidArgumentError(schema.warnings.back());
  }
  if (test_ != nullptr) {
    RETURN_IF_ERROR(ReadPart(*test_, rows.test_texts[column], static_cast<size_t>(schema.test_rows),
                             test_pixels, bad_test, schema.warnings));
  }
  const int64_t size = spec_.image->size, channels = spec_.image->channels;
  const auto stride = static_cast<size_t>(size * size * channels);
  if (std::count(bad.begin(), bad.end(), true) > 0) {
    DropTrainRows(bad, rows);
    size_t to = 0;
    for (size_t row = 0; row < bad.size(); ++row) {
      if (bad[row]) continue;
      if (to != row * stride) std::copy_n(pixels.data() + row * stride, stride, pixels.data() + to);
      to += stride;
    }
    pixels.resize(to);
  }
  std::vector<FloorColumn> train = ImageFloorColumns(pixels, size, channels);
  std::vector<FloorColumn> test = ImageFloorColumns(test_pixels, size, channels);
  for (size_t i = 0; i < train.size(); ++i) {
    Column feature;
    feature.name = train[i].name;
    feature.floor_only = true;
    schema.features.push_back(std::move(feature));
    rows.train.push_back({std::move(train[i].values), {}});
    rows.test.push_back({std::move(test[i].values), {}});
  }
  pixels.insert(pixels.end(), test_pixels.begin(), test_pixels.end());
  return WriteImageCache({schema.train_rows, schema.test_rows, size, channels}, pixels,
                         absl::StrCat(state_dir, "/", ImageCachePath(key)));
}

absl::Status ImageMedia::CheckUnchanged() const {
  RETURN_IF_ERROR(train_->CheckUnchanged());
  return test_ == nullptr ? absl::OkStatus() : test_->CheckUnchanged();
}

}  // namespace

absl::StatusOr<std::unique_ptr<RowMedia>> OpenImageMedia(const PrepareSpec& spec, int threads) {
  auto media = std::make_unique<ImageMedia>(spec, threads);
  RETURN_IF_ERROR(media->Open());
  return std::unique_ptr<RowMedia>(std::move(media));
}

}  // namespace traind
