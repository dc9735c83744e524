#include "worker/prepare/pretrained_check.h"

#include <absl/cleanup/cleanup.h>
#include <absl/strings/str_cat.h>
#include <unistd.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "common/durable_file.h"
#include "common/job_layout.h"
#include "common/run_program.h"
#include "common/status_macros.h"
#include "common/table/mapped_file.h"

namespace traind {
namespace {

absl::Status Keep(const PretrainedCheck& check) {
  const std::string kept = absl::StrCat(check.state_dir, "/", WeightsCachePath(check.sha256));
  const absl::StatusOr<FileDigest> there = DigestFile(kept);
  if (there.ok() && there->sha256 == check.sha256) return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::unique_ptr<MappedFile> file, MappedFile::Open(check.file));
  if (Sha256Hex(file->bytes()) != check.sha256) {
    return absl::FailedPreconditionError(absl::StrCat("model.pretrained.file: ", check.file,
                                                      " was changed after the Job was submitted"));
  }
  return WriteFileDurably(kept, file->bytes());
}

}  // namespace

absl::StatusOr<std::string> TakePretrained(const PretrainedCheck& check, absl::Duration patience) {
  constexpr size_t kMostBytes = 1 << 20;
  RETURN_IF_ERROR(Keep(check));
  // Longer than an argument may be.
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
  return absl::FailedPreconditionError(
      text("error") ? line["error"].get<std::string>()
                    : absl::StrCat("model.pretrained: ", check.file,
                                   ": the process that tried it ended without a word"));
}

}  // namespace traind
