#include "worker/prepare/tokenizers.h"

#include <absl/status/statusor.h>
#include <absl/strings/str_cat.h>

#include <algorithm>
#include <vector>

#include "common/base/durable_file.h"
#include "common/base/job_layout.h"
#include "common/base/status_macros.h"
#include "common/data/text/tokenizer.h"
#include "worker/prepare/sentencepiece_training.h"

namespace traind {
namespace {

absl::StatusOr<std::string> Learn(const Table& table, const std::vector<int32_t>& rows,
                                  int64_t vocabulary) {
  int64_t bytes = 0;
  for (const int32_t row : rows) {
    bytes += static_cast<int64_t>(table.RowText(Split::kTrain, row).size());
  }
  const auto step = static_cast<size_t>(std::max<int64_t>(1, bytes / kSentencepieceBytes));
  size_t at = 0;
  return TrainSentencepiece(
      [&](std::string& text) {
        if (at >= rows.size()) return false;
        text = table.RowText(Split::kTrain, rows[at]);
        at += step;
        return true;
      },
      vocabulary);
}

}  // namespace

absl::Status WriteTokenizers(const Table& table, absl::Span<const int16_t> fold_of,
                             const SplitSpec& split, int64_t vocabulary, absl::string_view given,
                             const std::string& state_dir, const std::string& job) {
  if (!given.empty()) RETURN_IF_ERROR(ParseTokenizer(given).status());
  for (int fold = 0; fold < split.folds; ++fold) {
    std::string model(given);
    if (given.empty()) {
      ASSIGN_OR_RETURN(model, Learn(table, TrainingRows(table, fold_of, fold, split), vocabulary));
    }
    RETURN_IF_ERROR(
        WriteFileDurably(absl::StrCat(state_dir, "/", TokenizerPath(job, fold)), model));
  }
  return absl::OkStatus();
}

}  // namespace traind
