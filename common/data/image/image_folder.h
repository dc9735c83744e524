// Lists folders of images as tables, so that users need not write a manifest.
#pragma once

#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>

#include <cstdint>
#include <string>
#include <vector>

namespace traind {

// The name of the manifest's column of files, if the spec gives none.
inline constexpr char kImageColumn[] = "file";

struct ImageFolder {
  // CSV with a column of paths relative to the folder, sorted bytewise, and, for folders of
  // classes, a column with the class folder's name.
  std::string manifest;
  int64_t files = 0;
  std::vector<std::string> classes;
  std::vector<std::string> warnings;  // files that were left out
};

// Whether a file name ends in .jpg, .jpeg or .png, in any letter case.
bool HasImageName(absl::string_view name);

// Lists a folder of class folders: each folder in `folder` is a class, and all images in and below
// it belong to it. InvalidArgument: a class folder without images, no class folder, or two columns
// of the same name. Names that begin with a dot are skipped.
absl::StatusOr<ImageFolder> ListClassFolders(const std::string& folder, absl::string_view column,
                                             absl::string_view target);

// Lists all images in and below `folder`, without classes. InvalidArgument: there is none.
absl::StatusOr<ImageFolder> ListImages(const std::string& folder, absl::string_view column);

// A quick check that reads only the names in `folder`. InvalidArgument: it contains no folder.
absl::Status CheckClassFolders(const std::string& folder);

}  // namespace traind
