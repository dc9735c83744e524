#include "server/intake/media_files.h"

#include <absl/strings/str_cat.h>

#include "common/image/image_folder.h"
#include "common/status_macros.h"

namespace traind {

absl::StatusOr<std::shared_ptr<const DataFile>> LookAtData(const v1::DataSpec& data, bool training,
                                                           DataFiles& files) {
  const std::string& path = training ? data.train() : data.test();
  ASSIGN_OR_RETURN(std::shared_ptr<const DataFile> seen, files.Look(path, data.has_image()));
  if (!data.has_image()) return seen;
  if (seen->arrays) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, " holds arrays; images are files, in folders or named by a table"));
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

}  // namespace traind
