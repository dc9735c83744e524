// The keys of a spec by their names: what users of other tools call them, where a misplaced one
// belongs, and what its value looks like.
// Threads: safe, pure.
#pragma once

#include <absl/strings/string_view.h>
#include <google/protobuf/descriptor.h>

#include <string>
#include <vector>

namespace traind {

// "train.epochs" as its keys; what follows a map field is one key, dots and all.
std::vector<std::string> SplitPath(const google::protobuf::Descriptor& root,
                                   absl::string_view path);

// The names of a section's fields.
std::vector<std::string> KeysOf(const google::protobuf::Descriptor& type);

// Describes what the field accepts, for "... is a list; expected <this>". element: one of a list.
std::string Expected(const google::protobuf::FieldDescriptor& field, bool element);

// Our key for one that users of other tools know by this name, "learning_rate" for "lr"; empty:
// none.
std::string OurName(absl::string_view name);

// Returns the place nearest to the root where a key of this name would be right: "train.epochs".
// section: where it stands.
std::string FindElsewhere(const google::protobuf::Descriptor& root, absl::string_view name,
                          absl::string_view section);

}  // namespace traind
