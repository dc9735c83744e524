#include "common/publish/joined_rows.h"

#include <absl/types/span.h>

#include "common/publish/ensemble.h"

namespace traind {

void AddFloorRows(const ScoringData& scoring, const StandingFloor& floor, int fold,
                  Covered& covered) {
  for (const size_t row : scoring.fold_rows[static_cast<size_t>(fold)]) {
    covered.rows.push_back(row);
    const auto begin = floor.oof.begin() + static_cast<ptrdiff_t>(row * scoring.columns);
    covered.values.insert(covered.values.end(), begin,
                          begin + static_cast<ptrdiff_t>(scoring.columns));
  }
}

void AddMemberRows(const ScoringData& scoring, int fold, const FoldAnswer& answer,
                   Covered& covered) {
  const auto& rows = scoring.fold_rows[static_cast<size_t>(fold)];
  covered.rows.insert(covered.rows.end(), rows.begin(), rows.end());
  covered.values.insert(covered.values.end(), answer.oof.begin(), answer.oof.end());
}

void AddJoinedRows(const ScoringData& scoring, int fold, const JoinedFold& joined,
                   Covered& covered) {
  if (!joined.powers.empty()) {
    const FoldParts parts = PartsOf(scoring, fold, joined);
    std::vector<float> values(joined.answer.oof.size());
    AnswerJoin(parts.fold.parts, joined.powers)
        .Join(parts.fold.values, scoring.columns, absl::MakeSpan(values));
    const auto& rows = scoring.fold_rows[static_cast<size_t>(fold)];
    covered.rows.insert(covered.rows.end(), rows.begin(), rows.end());
    covered.values.insert(covered.values.end(), values.begin(), values.end());
    return;
  }
  if (!joined.has_floor()) return AddMemberRows(scoring, fold, joined.answer, covered);
  Covered of_floor;
  AddFloorRows(scoring, *joined.floor, fold, of_floor);
  std::vector<float> values(of_floor.values.size());
  Blend({joined.answer.oof, of_floor.values}, {1 - joined.floor_weight, joined.floor_weight},
        absl::MakeSpan(values));
  covered.rows.insert(covered.rows.end(), of_floor.rows.begin(), of_floor.rows.end());
  covered.values.insert(covered.values.end(), values.begin(), values.end());
}

FoldParts PartsOf(const ScoringData& scoring, int fold, const JoinedFold& joined) {
  FoldParts parts;
  const std::vector<LoadedMember>& models = joined.answer.models;
  const double of_models = joined.has_floor() ? 1 - joined.floor_weight : 1;
  for (size_t k = 0; k < models.size(); ++k) {
    const double share = joined.answer.shares.empty() ? 1 / static_cast<double>(models.size())
                                                      : joined.answer.shares[k];
    parts.fold.parts.push_back({fold, models[k].member.trial, of_models * share});
    parts.fold.values.push_back(models[k].oof);
  }
  if (joined.has_floor()) {
    AddFloorRows(scoring, *joined.floor, fold, parts.of_floor);
    parts.fold.parts.push_back({-1, -1, joined.floor_weight});
    parts.fold.values.push_back(parts.of_floor.values);
  }
  if (scoring.classes()) {
    parts.fold.labels = scoring.LabelsOf(scoring.fold_rows[static_cast<size_t>(fold)]);
  }
  return parts;
}

}  // namespace traind
