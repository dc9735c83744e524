// The data that an error carries for programs besides its text.
#pragma once

#include <absl/status/status.h>
#include <absl/strings/string_view.h>

#include <map>
#include <string>
#include <vector>

namespace traind {

inline constexpr char kErrorDomain[] = "traind";
inline constexpr char kErrorInfoType[] = "type.googleapis.com/google.rpc.ErrorInfo";
// The reason of a detail about a field of the request; metadata has `field` and `message`.
inline constexpr char kInvalidField[] = "INVALID_FIELD";
// In the metadata of a field whose file was not taken: outside_roots, unreadable or unfit.
inline constexpr char kFileKey[] = "file";

// One google.rpc.ErrorInfo.
struct ErrorDetail {
  std::string reason;
  std::map<std::string, std::string> metadata;
};

// Errors of requests have a line for each mistake, "train.epochs '0' is below the minimum, 1", and
// get a detail for each; any other error gets one whose reason is its status's name.
std::vector<ErrorDetail> DetailsOf(const absl::Status& status);

// The field that a line of such an error is about: "name: ...", "data is missing", "train.epochs
// '0'
// ...". Empty: it is about none.
absl::string_view FieldOf(absl::string_view line);

}  // namespace traind
