// What an S3-compatible store says in XML. The bytes come from outside: nothing is trusted.
#pragma once

#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>

#include <string>
#include <vector>

#include "server/objects/object_store.h"

namespace traind {

// A page of ListObjectsV2, asked for with encoding-type=url.
struct S3Page {
  std::vector<ObjectInfo> objects;  // keys with the prefix
  std::string next;                 // where the next page begins; empty: this is the last one
};
// Unavailable: the text is no such page.
absl::StatusOr<S3Page> ParseS3Page(absl::string_view xml);

// The text between the first <tag> and the next </tag>, without entities; empty: there is none.
std::string S3Text(absl::string_view xml, absl::string_view tag);

// "Code: Message" of an error's text; empty: it is none.
std::string S3ErrorText(absl::string_view xml);

}  // namespace traind
