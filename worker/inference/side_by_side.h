// Several instances of a model predict different rows at the same time.
#pragma once

#include <absl/status/status.h>
#include <absl/types/span.h>

#include <cstdint>
#include <vector>

#include "worker/inference/row_model.h"

namespace traind {

// The ends of up to `most` steps of `step` rows from `begin` on. A last step of less than half is
// merged with the one before, because few rows may take another code path.
std::vector<int64_t> StepEnds(int64_t begin, int64_t end, int64_t step, size_t most);

// Predicts the rows begin..ends[0]-1, ends[0]..ends[1]-1 and so on, each step by a model of its
// own on a thread of its own. out: float32 [ends.back() - begin, outputs]. The result is, bit by
// bit, that of one model. Errors: the first one of the models.
// REQUIRES: the models are instances of the same one, at least as many as there are steps.
absl::Status PredictSideBySide(absl::Span<RowModel* const> models, const LaterRows& rows,
                               int64_t begin, absl::Span<const int64_t> ends,
                               absl::Span<float> out);

}  // namespace traind
