#include "common/data/table/text_column.h"

#include <absl/status/status.h>
#include <absl/strings/str_cat.h>

#include <algorithm>

#include "common/base/status_macros.h"
#include "common/data/table/csv.h"

namespace traind {

absl::StatusOr<std::vector<std::string>> ReadTextColumn(const CsvFile& table,
                                                        absl::string_view column) {
  std::vector<std::string> repeated;
  ASSIGN_OR_RETURN(const std::vector<std::string> header,
                   ReadCsvHeader(table.bytes, table.name, &repeated));
  const auto found = std::find(header.begin(), header.end(), column);
  if (found == header.end()) {
    return absl::NotFoundError(absl::StrCat(table.name, ": there is no column '", column, "'"));
  }
  const auto at = static_cast<size_t>(found - header.begin());
  std::vector<std::string> fields;
  CsvReader reader(table.bytes, table.name, DelimiterOf(table.bytes, table.name));
  for (bool is_header = true;; is_header = false) {
    ASSIGN_OR_RETURN(const bool more, reader.Next());
    if (!more) return fields;
    if (!is_header && at < reader.fields().size()) fields.emplace_back(reader.fields()[at]);
  }
}

}  // namespace traind
