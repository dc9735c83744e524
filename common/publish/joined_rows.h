// The out-of-fold values of some training rows, as models, the floor, or both together answer them.
// Threads: safe, pure.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "common/publish/floor_files.h"
#include "common/publish/fold_answers.h"
#include "common/publish/scoring_data.h"
#include "common/publish/second_layer.h"

namespace traind {

// Out-of-fold values of some training rows.
struct Covered {
  std::vector<size_t> rows;   // grouped by fold
  std::vector<float> values;  // [rows.size(), C]
};

// A fold's answer: its models, and the floor by its weight where that is above 0. With powers a
// second layer joins them.
struct JoinedFold {
  const FoldAnswer& answer;
  const std::optional<StandingFloor>& floor;
  double floor_weight = 0;
  const std::vector<TrialPower>& powers;

  // Whether the floor has a share.
  bool has_floor() const { return floor_weight > 0 && floor.has_value(); }
};

// Adds the rows of a fold with their values.
void AddFloorRows(const ScoringData& scoring, const StandingFloor& floor, int fold,
                  Covered& covered);
void AddMemberRows(const ScoringData& scoring, int fold, const FoldAnswer& answer,
                   Covered& covered);
void AddJoinedRows(const ScoringData& scoring, int fold, const JoinedFold& joined,
                   Covered& covered);

// A fold as ChoosePowers wants it. The spans are into the answer and into of_floor.
struct FoldParts {
  FoldToJoin fold;
  Covered of_floor;
};
FoldParts PartsOf(const ScoringData& scoring, int fold, const JoinedFold& joined);

}  // namespace traind
