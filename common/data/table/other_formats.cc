#include "common/data/table/other_formats.h"

#include <absl/strings/ascii.h>
#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_split.h>
#include <absl/strings/strip.h>

#include <algorithm>
#include <vector>

#include "common/data/table/number.h"

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

bool AllDigits(absl::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), absl::ascii_isdigit);
}

// "1000" for "1,000", "1000.5" for "1,000.5".
std::string WithoutThousands(absl::string_view text) {
  const size_t point = text.find('.');
  const std::vector<absl::string_view> groups = absl::StrSplit(text.substr(0, point), ',');
  std::string number(groups[0]);
  for (size_t i = 1; i < groups.size(); ++i) {
    if (groups[i].size() != 3 || !AllDigits(groups[i])) return "";
    absl::StrAppend(&number, groups[i]);
  }
  if (point != text.npos) absl::StrAppend(&number, text.substr(point));
  float value = 0;
  return ParseNumber(number, value) == NumberKind::kNumber ? number : "";
}

// Whether the text is 1.2.2024, 01/02/2024 or the like.
bool IsDate(absl::string_view text) {
  for (const char separator : {'.', '/', '-'}) {
    const std::vector<absl::string_view> parts = absl::StrSplit(text, separator);
    const bool sized =
        parts.size() == 3 && parts[0].size() <= 2 && parts[1].size() <= 2 && parts[2].size() == 4;
    if (sized && std::all_of(parts.begin(), parts.end(), AllDigits)) return true;
  }
  return false;
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

std::string HowToWrite(absl::string_view text) {
  if (IsDate(text)) return "year-month-day, such as 2024-12-31";
  absl::string_view amount = text;
  const bool percent = absl::ConsumeSuffix(&amount, "%");
  for (const absl::string_view currency :
       {"$", "\xe2\x82\xac", "\xc2\xa3"}) {  // dollar, euro, pound
    if (absl::ConsumePrefix(&amount, currency) || absl::ConsumeSuffix(&amount, currency)) break;
  }
  const std::string number = WithoutThousands(absl::StripAsciiWhitespace(amount));
  if (number.empty() || number == text) return "";
  return percent ? absl::StrCat(number, ", without %") : number;
}

}  // namespace traind
