// SentencePiece models for Ranks, which cannot learn them themselves.
#pragma once

#include <absl/status/status.h>
#include <absl/strings/string_view.h>
#include <absl/types/span.h>

#include <cstdint>
#include <string>

#include "common/data/table/folds.h"
#include "common/data/table/table.h"

namespace traind {

// Writes tokenizer-<fold>.model for each fold to the Job's existing folder: the bytes `given`
// or, if they are empty, a model that is learnt from the fold's own training rows (from evenly
// spread ones if these have more than kSentencepieceBytes).
// Errors: InvalidArgument: `given` is not such a model, or no model can be learnt from the
// texts; those of WriteFileDurably.
absl::Status WriteTokenizers(const Table& table, absl::Span<const int16_t> fold_of,
                             const SplitSpec& split, int64_t vocabulary, absl::string_view given,
                             const std::string& state_dir, const std::string& job);

}  // namespace traind
