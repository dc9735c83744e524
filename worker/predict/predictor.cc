#include "worker/predict/predictor.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/strip.h>

#include <algorithm>

#include "common/durable_file.h"
#include "common/job_layout.h"
#include "common/status_macros.h"
#include "common/table/npy.h"

namespace traind {
namespace {

constexpr int64_t kEncodeRows = 16384;

// "oof.npy" with "-12" becomes "oof-12.npy".
std::string WithSuffix(absl::string_view file, const std::string& suffix) {
  return absl::StrCat(absl::StripSuffix(file, ".npy"), suffix, ".npy");
}

}  // namespace

absl::StatusOr<std::vector<float>> PredictTest(Learner& learner, const RowEncoder& encoder,
                                               Weights which, int outputs) {
  const int64_t rows = encoder.table().rows(Split::kTest);
  std::vector<float> out(static_cast<size_t>(rows * outputs));
  for (int64_t begin = 0; begin < rows; begin += kEncodeRows) {
    const int64_t end = std::min(rows, begin + kEncodeRows);
    const EncodedRows part = encoder.Encode(Split::kTest, begin, end);
    RETURN_IF_ERROR(
        learner.Predict(which, part,
                        absl::MakeSpan(out).subspan(static_cast<size_t>(begin * outputs),
                                                    static_cast<size_t>((end - begin) * outputs))));
  }
  return out;
}

absl::StatusOr<SavedPredictions> WritePredictions(const std::string& state_dir,
                                                  const std::string& job, int64_t attempt,
                                                  const std::string& suffix, int outputs,
                                                  absl::Span<const float> oof,
                                                  absl::Span<const float> test) {
  const std::string attempt_dir = AttemptDir(job, attempt);
  // "attempts/<attempt>", as seen from the job's folder.
  const std::string from_job =
      std::string(absl::StripPrefix(attempt_dir, absl::StrCat(JobDir(job), "/")));
  const auto write = [&](absl::string_view file, absl::Span<const float> values, std::string& path,
                         std::string& sha256) -> absl::Status {
    const std::string name = WithSuffix(file, suffix);
    const std::string absolute = absl::StrCat(state_dir, "/", attempt_dir, "/", name);
    const int64_t rows = static_cast<int64_t>(values.size()) / outputs;
    RETURN_IF_ERROR(WriteNpy(absolute, {rows, outputs}, values));
    ASSIGN_OR_RETURN(const FileDigest digest, DigestFile(absolute));
    path = absl::StrCat(from_job, "/", name);
    sha256 = digest.sha256;
    return absl::OkStatus();
  };
  SavedPredictions saved;
  RETURN_IF_ERROR(write(kOofFile, oof, saved.oof, saved.oof_sha256));
  if (!test.empty()) RETURN_IF_ERROR(write(kTestFile, test, saved.test, saved.test_sha256));
  return saved;
}

}  // namespace traind
