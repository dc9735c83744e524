#include "common/data/table/array_member.h"

#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>
#include <absl/strings/strip.h>

#include <vector>

#include "common/base/status_macros.h"
#include "common/data/table/array_file.h"
#include "common/data/table/zip.h"

namespace traind {

absl::StatusOr<ArrayMember> FindArray(absl::string_view bytes, const std::string& file,
                                      absl::Span<const std::string> names, std::string& buffer) {
  if (!IsArrayFile(bytes)) {
    return absl::InvalidArgumentError(absl::StrCat(file, " is neither an NPY nor an NPZ file"));
  }
  if (!absl::StartsWith(bytes, "PK")) return ArrayMember{file, bytes};
  ASSIGN_OR_RETURN(const std::vector<ZipMember> members, ReadZip(bytes, file));
  for (const std::string& name : names) {
    for (const ZipMember& member : members) {
      if (absl::StripSuffix(member.name, ".npy") != name) continue;
      ASSIGN_OR_RETURN(const absl::string_view array, ReadMember(member, file, buffer));
      return ArrayMember{absl::StrCat(file, ": array '", name, "'"), array};
    }
  }
  std::vector<std::string> there;
  for (const ZipMember& member : members) {
    there.emplace_back(absl::StripSuffix(member.name, ".npy"));
  }
  return absl::NotFoundError(absl::StrCat(file, " has no array '", absl::StrJoin(names, "' or '"),
                                          "'; it has '", absl::StrJoin(there, "', '"), "'"));
}

}  // namespace traind
