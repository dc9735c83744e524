#include "common/data/image/image_input.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>
#include <sys/stat.h>

#include <algorithm>
#include <utility>

#include "common/base/status_macros.h"
#include "common/data/image/image_folder.h"
#include "common/data/image/image_set.h"
#include "common/data/table/array_file.h"
#include "common/data/table/mapped_file.h"
#include "common/data/table/packed_table.h"
#include "common/data/table/table_text.h"
#include "common/data/table/text_column.h"

namespace traind {
namespace {

constexpr double kMostBadShare = 0.05;
constexpr int64_t kMostNamed = 5;

std::string BaseName(const std::string& path) { return path.substr(path.rfind('/') + 1); }

bool IsFolder(const std::string& path) {
  struct stat info;
  return stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

class ImageFiles final : public ImageInput {
 public:
  explicit ImageFiles(ImageInputOptions options) : ImageInput(std::move(options)) {}

  absl::Status OpenFolder(const std::string& path) {
    const ImageFields& fields = options_.fields;
    ASSIGN_OR_RETURN(ImageFolder folder,
                     options_.part == ImagePart::kTrain
                         ? ListClassFolders(path, fields.column, options_.targets[0])
                         : ListImages(path, fields.column));
    root_ = path;
    manifest_ = std::move(folder.manifest);
    table_ = {BaseName(path), manifest_};
    warnings_ = std::move(folder.warnings);
    return absl::OkStatus();
  }
  absl::Status SetTable(const std::string& path, std::unique_ptr<MappedFile> file) {
    file_ = std::move(file);
    root_ = path.substr(0, path.rfind('/'));
    ASSIGN_OR_RETURN(text_, TableText::Of(file_->bytes(), BaseName(path), options_.scratch));
    table_ = text_->csv();
    return absl::OkStatus();
  }

  CsvFile table() const override { return table_; }
  absl::StatusOr<std::string> Digest() const override;
  ImagesRead Read(absl::Span<const std::string> names, absl::Span<uint8_t> out) const override {
    return {ReadImages(names, SetOptions(), out).errors, {}};
  }
  absl::Status CheckUnchanged() const override {
    return file_ == nullptr ? absl::OkStatus() : file_->CheckUnchanged();
  }

 private:
  ImageSetOptions SetOptions() const {
    ImageSetOptions options;
    options.root = root_;
    options.size = options_.fields.size;
    options.channels = options_.fields.channels;
    options.threads = options_.threads;
    return options;
  }

  std::string root_;      // folder that the paths are relative to
  std::string manifest_;  // for a folder of images
  std::unique_ptr<MappedFile> file_;
  std::unique_ptr<TableText> text_;
  CsvFile table_;
};

absl::StatusOr<std::string> ImageFiles::Digest() const {
  // A row of the wrong width is reported when the table is read.
  const auto paths = ReadTextColumn(table_, options_.fields.column);
  if (absl::IsNotFound(paths.status())) {
    return absl::InvalidArgumentError(
        absl::StrCat(paths.status().message(), " (data.image.column)"));
  }
  RETURN_IF_ERROR(paths.status());
  return DigestImages(*paths, SetOptions());
}

absl::Status NoLabels(const ImageInputOptions& options) {
  const bool train = options.part == ImagePart::kTrain;
  const std::string& labels = train ? options.fields.labels : options.fields.test_labels;
  if (labels.empty() || options.part == ImagePart::kLater) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(train ? "data.image.labels" : "data.image.test_labels", ": ",
                   train ? "data.train" : "data.test",
                   " is not an array; folders and tables contain their labels"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<ImageInput>> ImageInput::Open(const std::string& path,
                                                             ImageInputOptions options) {
  auto files = std::make_unique<ImageFiles>(options);
  if (IsFolder(path)) {
    RETURN_IF_ERROR(NoLabels(options));
    RETURN_IF_ERROR(files->OpenFolder(path));
    return std::unique_ptr<ImageInput>(std::move(files));
  }
  ASSIGN_OR_RETURN(auto file, MappedFile::Open(path, MapUse::kStream));
  if (IsArrayFile(file->bytes()) && !IsPackedTable(file->bytes()))
    return OpenImageArrays(path, std::move(options));
  RETURN_IF_ERROR(NoLabels(options));
  RETURN_IF_ERROR(files->SetTable(path, std::move(file)));
  return std::unique_ptr<ImageInput>(std::move(files));
}

void UnreadableImages::Add(const std::string& error) {
  if (++count_ <= kMostNamed) named_.push_back(error);
}

absl::StatusOr<std::string> UnreadableImages::CheckTolerable(const std::string& file,
                                                             int64_t images) const {
  const std::string which = absl::StrCat(
      file, ": ", count_, " of ", images, " images cannot be read: ", absl::StrJoin(named_, "; "),
      count_ > kMostNamed ? absl::StrCat("; and ", count_ - kMostNamed, " more") : "");
  const double most = std::max(1.0, kMostBadShare * static_cast<double>(images));
  if (static_cast<double>(count_) > most || count_ == images) {
    return absl::InvalidArgumentError(which);
  }
  return which;
}

}  // namespace traind
