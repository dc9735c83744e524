#include "common/wire/error_details.h"

#include <absl/strings/match.h>
#include <absl/strings/str_split.h>

#include "common/base/refused_files.h"

namespace traind {

absl::string_view FieldOf(absl::string_view line) {
  const absl::string_view word = line.substr(0, line.find_first_of(" :"));
  const absl::string_view rest = line.substr(word.size());
  if (word.find_first_not_of("abcdefghijklmnopqrstuvwxyz_.[]0123456789") != word.npos) return "";
  const bool told = absl::StartsWith(rest, ":") || absl::StartsWith(rest, " '") ||
                    absl::StartsWith(rest, " is missing") || absl::StrContains(word, ".");
  return told ? word : "";
}

std::vector<ErrorDetail> DetailsOf(const absl::Status& status) {
  std::vector<ErrorDetail> details;
  const RefusedFiles files = RefusedFilesOf(status);
  if (absl::IsInvalidArgument(status)) {
    for (const absl::string_view line :
         absl::StrSplit(status.message(), '\n', absl::SkipWhitespace())) {
      const absl::string_view field = FieldOf(line);
      if (field.empty()) continue;
      ErrorDetail& detail = details.emplace_back(ErrorDetail{
          kInvalidField, {{"field", std::string(field)}, {"message", std::string(line)}}});
      const auto file = files.find(std::string(field));
      if (file != files.end()) detail.metadata[kFileKey] = Name(file->second);
    }
  }
  if (details.empty()) details.push_back({absl::StatusCodeToString(status.code()), {}});
  return details;
}

}  // namespace traind
