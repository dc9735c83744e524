#include "common/base/digest_text.h"

#include <absl/status/status.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/strip.h>

#include "common/base/durable_file.h"

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

}  // namespace traind
