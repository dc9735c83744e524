// The files of images and volumes that data.train and data.test stand for, so that they can travel.
#pragma once

#include <absl/status/statusor.h>

#include <optional>
#include <string>
#include <vector>

namespace traind {

// Below one folder.
struct MediaFiles {
  std::string root;   // absolute, links resolved
  std::string table;  // the file that data.train names, in the root; empty: it names the root
  std::vector<std::string> files;  // relative to the root, the table among them
  // What only has to be there: folders, with a '/' at the end, and files that are no images.
  std::vector<std::string> names;
};

// Lists the images of a folder, or what a table's columns name. nullopt: the path is a single file,
// such as an array of images. columns: of the table; the first must be there. folders: a folder is
// one of images. scratch: a folder for scratch files. The files themselves are not read, and need
// not be there. Errors: NotFound and PermissionDenied; InvalidArgument: the table is none, or lacks
// the column.
absl::StatusOr<std::optional<MediaFiles>> ListMediaFiles(const std::string& path,
                                                         const std::vector<std::string>& columns,
                                                         bool folders, const std::string& scratch);

}  // namespace traind
