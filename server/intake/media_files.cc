#include "server/intake/media_files.h"

#include <absl/algorithm/container.h>
#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>

#include "common/base/status_macros.h"
#include "common/data/image/image_array.h"
#include "common/data/image/image_fields.h"
#include "common/data/image/image_folder.h"
#include "common/data/table/npy.h"

namespace traind {
namespace {

// Checks what the beginning of an array tells. An archive is checked when it is read.
absl::Status CheckImageArray(const DataFile& file, const v1::ImageSpec& image, bool training) {
  if (file.parquet) {
    return absl::InvalidArgumentError(
        absl::StrCat(file.path, " is a Parquet table; images are named by a CSV table"));
  }
  if (!absl::StartsWith(file.first, "\x93NUMPY")) return absl::OkStatus();
  const absl::StatusOr<NpyHeader> header = ParseNpyHeader(file.first, file.path);
  if (!header.ok()) return absl::InvalidArgumentError(header.status().message());
  ASSIGN_OR_RETURN(const ImageLayout layout, ImageLayoutByName(image.layout()));
  RETURN_IF_ERROR(ImageArrayShapeOf(*header, layout, file.path).status());
  if (!training || image.has_labels()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      file.path, " has images and no labels: data.image.labels names a file that has them"));
}

}  // namespace

absl::StatusOr<std::shared_ptr<const DataFile>> LookAtData(const v1::DataSpec& data, bool training,
                                                           DataFiles& files) {
  const std::string& path = training ? data.train() : data.test();
  ASSIGN_OR_RETURN(std::shared_ptr<const DataFile> seen, files.Look(path, data.has_image()));
  if (!data.has_image()) return seen;
  if (seen->arrays) {
    RETURN_IF_ERROR(CheckImageArray(*seen, data.image(), training));
  } else if (training ? data.image().has_labels() : data.image().has_test_labels()) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, " is no array: data.image.", training ? "labels" : "test_labels",
                     " has none to be of; folders and tables have their labels themselves"));
  }
  if (!seen->folder) return seen;
  auto folder = std::make_shared<DataFile>(*seen);
  folder->header = {data.image().column()};
  if (!training) return std::shared_ptr<const DataFile>(std::move(folder));
  RETURN_IF_ERROR(CheckClassFolders(seen->path));
  if (data.target().empty()) return absl::InvalidArgumentError("a folder of images has one target");
  folder->header.push_back(data.target());
  return std::shared_ptr<const DataFile>(std::move(folder));
}

absl::StatusOr<std::shared_ptr<const DataFile>> LookAtLaterData(const v1::DataSpec& learnt,
                                                                const std::string& path,
                                                                DataFiles& files) {
  ASSIGN_OR_RETURN(std::shared_ptr<const DataFile> seen, files.Look(path, learnt.has_image()));
  if (learnt.has_image() && seen->arrays) {
    RETURN_IF_ERROR(CheckImageArray(*seen, learnt.image(), /*training=*/false));
  }
  if (seen->arrays || seen->folder) return seen;
  const std::string& column =
      learnt.has_volume() ? learnt.volume().image() : learnt.image().column();
  if (!column.empty() && !absl::c_linear_search(seen->header, column)) {
    return absl::InvalidArgumentError(MissingColumn("later", column, seen->header));
  }
  return seen;
}

}  // namespace traind
