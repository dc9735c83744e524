#include "worker/prepare/pretrained_check.h"

#include <absl/cleanup/cleanup.h>
#include <absl/strings/str_cat.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "common/base/durable_file.h"
#include "common/base/job_layout.h"
#include "common/base/run_program.h"
#include "common/base/status_macros.h"
#include "worker/prepare/kept_file.h"
#include "worker/task/failure.h"

namespace traind {
absl::StatusOr<std::string> CheckPretrained(const PretrainedCheck& check, absl::Duration patience) {
  constexpr size_t kMostBytes = 1 << 20;
  RETURN_IF_ERROR(KeepFile("model.pretrained.file", check.file, check.sha256,
                           absl::StrCat(check.state_dir, "/", WeightsCachePath(check.sha256))));
  // Passed as a file, because it may be longer than an argument may be.
  const std::string spec =
      absl::StrCat(check.state_dir, "/", JobDir(check.job), "/pretrained-check.json");
  RETURN_IF_ERROR(WriteFileDurably(spec, check.spec_json));
  const auto remove = absl::MakeCleanup([&spec] { unlink(spec.c_str()); });
  const auto run =
      RunProgram({check.program, "try-weights", check.state_dir, check.job, check.table, spec},
                 patience, kMostBytes);
  if (absl::IsDeadlineExceeded(run.status())) return "";
  RETURN_IF_ERROR(run.status());
  const auto line = nlohmann::json::parse(run->output, nullptr, /*allow_exceptions=*/false);
  const auto text = [&line](const char* key) {
    return line.is_object() && line.contains(key) && line[key].is_string();
  };
  if (text("report")) return line["report"].get<std::string>();
  return UserError(text("error")
                       ? line["error"].get<std::string>()
                       : absl::StrCat("model.pretrained: ", check.file,
                                      ": the process that tried it ended without an answer"));
}

}  // namespace traind
