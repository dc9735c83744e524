#include "common/data/table/other_formats.h"

#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>

namespace traind {
namespace {

// The name of a ZIP archive's first member; empty: it is none.
absl::string_view FirstMember(absl::string_view bytes) {
  constexpr size_t kLengthAt = 26, kNameAt = 30;
  if (!absl::StartsWith(bytes, "PK\x03\x04") || bytes.size() < kNameAt) return "";
  const size_t length = static_cast<unsigned char>(bytes[kLengthAt]) |
                        static_cast<size_t>(static_cast<unsigned char>(bytes[kLengthAt + 1])) << 8;
  return bytes.substr(kNameAt, length);
}

bool IsSpreadsheet(absl::string_view bytes) {
  if (absl::StartsWith(bytes, "\xd0\xcf\x11\xe0")) return true;  // .xls
  const absl::string_view member = FirstMember(bytes);
  if (member == "[Content_Types].xml" || member == "mimetype") return true;
  const auto below = [member](absl::string_view folder) {
    return absl::StartsWith(member, folder);
  };
  return below("xl/") || below("_rels/") || below("docProps/");
}

}  // namespace

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
