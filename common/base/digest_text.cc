#include "common/base/digest_text.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/strip.h>

#include "common/base/durable_file.h"
#include "common/base/status_macros.h"

namespace traind {
namespace {

constexpr absl::string_view kEnd = "\n}\n";

std::string FirstLine(absl::string_view name, absl::string_view body) {
  return absl::StrCat("{\"sha256\":\"", Sha256Hex(body), "\",\"", name, "\":\n");
}

}  // namespace

std::string WithDigest(absl::string_view name, absl::string_view body) {
  return absl::StrCat(FirstLine(name, body), body, kEnd);
}

absl::StatusOr<absl::string_view> CheckedBody(absl::string_view name, absl::string_view text) {
  const size_t begin = text.find('\n');
  if (begin == text.npos || !absl::ConsumeSuffix(&text, kEnd) || text.size() <= begin) {
    return absl::DataLossError("it is truncated");
  }
  const absl::string_view body = text.substr(begin + 1);
  if (text.substr(0, begin + 1) != FirstLine(name, body)) {
    return absl::DataLossError("its digest differs");
  }
  return body;
}

absl::StatusOr<std::string> ReadBody(const std::string& path, absl::string_view name) {
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  const absl::StatusOr<absl::string_view> body = CheckedBody(name, text);
  if (!body.ok()) return Damaged(path, body.status().message());
  return std::string(*body);
}

absl::Status Damaged(absl::string_view path, absl::string_view what) {
  return absl::DataLossError(absl::StrCat(path, " is damaged: ", what));
}

}  // namespace traind
