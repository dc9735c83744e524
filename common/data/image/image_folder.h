// Folders of images as tables: the manifest that a user need not write.
#pragma once

#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>

#include <cstdint>
#include <string>
#include <vector>

namespace traind {

// The column of a folder's manifest that names the files, where the spec names none.
inline constexpr char kImageColumn[] = "file";

struct ImageFolder {
  // CSV: a column of paths relative to the folder, in the order of their bytes, and, of a
  // folder of classes, one with the class folder's name.
  std::string manifest;
  int64_t files = 0;
  std::vector<std::string> classes;
  std::vector<std::string> warnings;  // files left out
};

// Whether a name ends as those of images do: .jpg, .jpeg, .png, in any case.
bool HasImageName(absl::string_view name);

// Folders of classes: each folder in `folder` is a class, and all images in and below it
// are of it. InvalidArgument: a class folder without images, no class folder, two
// columns of the same name. Names that begin with a dot are passed over.
absl::StatusOr<ImageFolder> ListClassFolders(const std::string& folder, absl::string_view column,
                                             absl::string_view target);

// All images in and below `folder`, without classes. InvalidArgument: there is none.
absl::StatusOr<ImageFolder> ListImages(const std::string& folder, absl::string_view column);

// A quick look, at the names in the folder alone: InvalidArgument as ListClassFolders
// where it has no folder in it.
absl::Status CheckClassFolders(const std::string& folder);

}  // namespace traind
