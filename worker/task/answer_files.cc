#include "worker/task/answer_files.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/strip.h>

#include "common/base/durable_file.h"
#include "common/base/job_layout.h"
#include "common/base/status_macros.h"
#include "common/data/table/npy.h"

namespace traind {
namespace {

// "oof.npy" with "-12" becomes "oof-12.npy".
std::string WithSuffix(absl::string_view file, const std::string& suffix) {
  return absl::StrCat(absl::StripSuffix(file, ".npy"), suffix, ".npy");
}

// The Attempt's folder, as seen from the job's: "attempts/<attempt>".
std::string FromJob(const std::string& job, int64_t attempt) {
  const std::string dir = AttemptDir(job, attempt);
  return std::string(absl::StripPrefix(dir, absl::StrCat(JobDir(job), "/")));
}

}  // namespace

std::string TestPath(const std::string& state_dir, const std::string& job, int64_t attempt,
                     const std::string& suffix) {
  return absl::StrCat(state_dir, "/", AttemptDir(job, attempt), "/", WithSuffix(kTestFile, suffix));
}

absl::StatusOr<SavedPredictions> WritePredictions(const std::string& state_dir,
                                                  const std::string& job, int64_t attempt,
                                                  const std::string& suffix, int outputs,
                                                  absl::Span<const float> oof,
                                                  const TestAnswers& test) {
  const auto write = [&](absl::string_view file, absl::Span<const float> values, std::string& path,
                         std::string& sha256) -> absl::Status {
    const std::string name = WithSuffix(file, suffix);
    const std::string absolute = absl::StrCat(state_dir, "/", AttemptDir(job, attempt), "/", name);
    const int64_t rows = static_cast<int64_t>(values.size()) / outputs;
    RETURN_IF_ERROR(WriteNpy(absolute, {rows, outputs}, values));
    ASSIGN_OR_RETURN(const FileDigest digest, DigestFile(absolute));
    path = absl::StrCat(FromJob(job, attempt), "/", name);
    sha256 = digest.sha256;
    return absl::OkStatus();
  };
  SavedPredictions saved;
  RETURN_IF_ERROR(write(kOofFile, oof, saved.oof, saved.oof_sha256));
  if (!test.file.empty()) {
    saved.test = absl::StrCat(FromJob(job, attempt), "/", WithSuffix(kTestFile, suffix));
    saved.test_sha256 = test.sha256;
  } else if (!test.values.empty()) {
    RETURN_IF_ERROR(write(kTestFile, test.values, saved.test, saved.test_sha256));
  }
  return saved;
}

}  // namespace traind
