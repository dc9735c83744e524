// What Ranks need of texts and cannot learn themselves: SentencePiece models.
#pragma once

#include <absl/status/status.h>
#include <absl/strings/string_view.h>
#include <absl/types/span.h>

#include <cstdint>
#include <string>

#include "common/data/table/folds.h"
#include "common/data/table/table.h"

namespace traind {

// tokenizer-<fold>.model of each fold in the Job's folder, which exists: `given`, or where
// that is empty a model learnt from the fold's own training rows, evenly spread ones where
// those have more than kSentencepieceBytes. InvalidArgument: `given` is no such model, or
// the texts do not make one; else those of WriteFileDurably.
absl::Status WriteTokenizers(const Table& table, absl::Span<const int16_t> fold_of,
                             const SplitSpec& split, int64_t vocabulary, absl::string_view given,
                             const std::string& state_dir, const std::string& job);

}  // namespace traind
