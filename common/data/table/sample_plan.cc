#include "common/data/table/sample_plan.h"

#include <absl/strings/str_cat.h>

#include <nlohmann/json.hpp>

#include "common/base/durable_file.h"
#include "common/base/status_macros.h"

namespace traind {

absl::Status WriteSamplePlan(const std::string& path, const SplitSpec& split) {
  nlohmann::json plan = {{"split", std::string(SplitName(split.kind))},
                         {"window", split.shape.window},
                         {"horizon", split.shape.horizon}};
  if (split.shape.rolling) plan["rolling"] = true;
  return WriteFileDurably(path, plan.dump() + "\n");
}

absl::StatusOr<SplitSpec> ReadSamplePlan(const std::string& path) {
  SplitSpec split;
  split.kind = SplitKind::kStratified;
  const absl::StatusOr<std::string> text = ReadFile(path);
  if (absl::IsNotFound(text.status())) return split;
  RETURN_IF_ERROR(text.status());
  const auto plan = nlohmann::json::parse(*text, nullptr, /*allow_exceptions=*/false);
  const auto whole = [&](const char* key) {
    return plan.is_object() && plan.contains(key) && plan[key].is_number_integer();
  };
  if (!whole("window") || !whole("horizon") || !plan.contains("split") ||
      !plan["split"].is_string()) {
    return absl::DataLossError(absl::StrCat(path, " is damaged"));
  }
  const auto kind = SplitByName(plan["split"].get<std::string>());
  split.shape.window = plan["window"].get<int64_t>();
  split.shape.horizon = plan["horizon"].get<int64_t>();
  if (!kind.ok() || split.shape.window < 1 || split.shape.horizon < 0) {
    return absl::DataLossError(absl::StrCat(path, " is damaged"));
  }
  split.kind = *kind;
  split.shape.rolling = plan.contains("rolling") && plan["rolling"] == true;
  return split;
}

}  // namespace traind
