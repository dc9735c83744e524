// The floor's features of texts.
#pragma once

#include "common/data/table/table_writer.h"

namespace traind {

// Adds a bag of hashed words (common/data/text/hashed_words.h) of the rows' texts as columns
// that only the floor uses. Their number keeps the table in proportion to its
// rows and is at most 2048.
void AddTextFeatures(TableRows& rows);

}  // namespace traind
