#include "common/data/volume/file_pair.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/strip.h>
#include <unistd.h>

#include <utility>

namespace traind {

std::string OtherOfPair(const std::string& path) {
  for (const auto& [own, other] :
       {std::make_pair(".hdr", ".img"), std::make_pair(".img", ".hdr")}) {
    absl::string_view stem = path;
    absl::ConsumeSuffix(&stem, ".gz");
    if (!absl::ConsumeSuffix(&stem, own)) continue;
    for (const char* const packed : {"", ".gz"}) {
      std::string beside = absl::StrCat(stem, other, packed);
      if (access(beside.c_str(), F_OK) == 0) return beside;
    }
  }
  return "";
}

}  // namespace traind
