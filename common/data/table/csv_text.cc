// Checks that a table is text.
#include <absl/strings/str_cat.h>

#include <algorithm>

#include "common/base/utf8.h"
#include "common/data/table/csv.h"

namespace traind {

absl::Status CheckCsvText(absl::string_view bytes, const std::string& name, char delimiter,
                          const std::vector<std::string>& header) {
  const size_t at = FirstNotUtf8(bytes);
  if (at == bytes.npos) return absl::OkStatus();
  const std::string what = NotUtf8Text(static_cast<unsigned char>(bytes[at]));
  CsvReader reader(bytes, name, delimiter);
  while (reader.position() <= at) {
    const absl::StatusOr<bool> row = reader.Next();
    if (!row.ok() || !*row) break;
    if (reader.position() <= at) continue;
    const auto& fields = reader.fields();
    const auto bad = std::find_if(fields.begin(), fields.end(), [](absl::string_view field) {
      return FirstNotUtf8(field) != field.npos;
    });
    if (bad == fields.end()) break;
    const auto column = static_cast<size_t>(bad - fields.begin());
    const bool named = reader.rows() > 1 && column < header.size();
    return absl::InvalidArgumentError(absl::StrCat(
        name, ": ", reader.rows() > 1 ? absl::StrCat("row ", reader.rows() - 1) : "the header",
        " (line ", reader.line(), "), column ",
        named ? absl::StrCat("'", header[column], "'") : absl::StrCat(column + 1), ": ", what));
  }
  const int64_t line =
      1 + std::count(bytes.begin(), bytes.begin() + static_cast<int64_t>(at), '\n');
  return absl::InvalidArgumentError(absl::StrCat(name, ": line ", line, ": ", what));
}

}  // namespace traind
