#include "common/publish/mask_prediction.h"

#include <absl/strings/string_view.h>

#include "common/base/status_macros.h"
#include "common/publish/mask_files.h"

namespace traind {

absl::StatusOr<std::unique_ptr<PredictionWriter>> WriteMaskPrediction(
    const std::string& state_dir, const std::string& job, AnswerColumns columns,
    PredictionForm form, const VolumeSet& set, const std::vector<std::string>& ids,
    const JoinedValues& values, absl::Span<const int> largest) {
  form.format = FileFormat::kCsv;  // the masks are the arrays
  const std::vector<std::string>& classes = set.classes();
  if (classes.size() > 1) {
    columns.targets.insert(columns.targets.end(), classes.begin(), classes.end());
  }
  const bool has_ids = !columns.id.empty();
  const auto rows = static_cast<int64_t>(set.volumes(Split::kTest).size());
  ASSIGN_OR_RETURN(std::unique_ptr<PredictionWriter> writer,
                   PredictionWriter::Begin(state_dir, job, columns, form, rows));
  ASSIGN_OR_RETURN(const MaskFiles masks,
                   WriteMasks(writer->folder(), MaskFormOf(form.masks, set), set,
                              has_ids ? ids : std::vector<std::string>(), values, largest));
  for (size_t row = 0; row < masks.shares.size(); ++row) {
    RETURN_IF_ERROR(writer->Add(has_ids ? absl::string_view(ids[row]) : absl::string_view(),
                                masks.shares[row]));
  }
  writer->PackWith(masks.names);
  return writer;
}

}  // namespace traind
