#include "common/data/table/other_formats.h"

#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>

#include "common/data/table/zip.h"

namespace traind {

bool IsSpreadsheet(absl::string_view bytes) {
  if (absl::StartsWith(bytes, "\xd0\xcf\x11\xe0")) return true;  // .xls
  const std::string member = ReadLocalZipHeader(bytes).name;
  if (member == "[Content_Types].xml" || member == "mimetype") return true;
  const auto below = [&member](absl::string_view folder) {
    return absl::StartsWith(member, folder);
  };
  return below("xl/") || below("_rels/") || below("docProps/");
}

bool IsParquet(absl::string_view bytes) { return absl::StartsWith(bytes, "PAR1"); }

absl::Status RefuseOtherFormats(absl::string_view bytes, absl::string_view name) {
  const auto refuse = [name](absl::string_view what) {
    return absl::InvalidArgumentError(absl::StrCat(name, ": ", what));
  };
  if (absl::StartsWith(bytes, "\xff\xfe") || absl::StartsWith(bytes, "\xfe\xff")) {
    return refuse("the file is UTF-16; save it as UTF-8");
  }
  if (absl::StartsWith(bytes, "\x1f\x8b")) {
    return refuse("the file is compressed (gzip); unpack it first, as by gunzip");
  }
  if (IsSpreadsheet(bytes)) return refuse("this is a spreadsheet; save it as CSV, in UTF-8");
  return absl::OkStatus();
}

}  // namespace traind
