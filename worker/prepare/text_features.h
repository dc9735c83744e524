// What the floor sees of texts.
#pragma once

#include "common/data/table/table_writer.h"

namespace traind {

// Adds a bag of hashed words (common/data/text/hashed_words.h) of the rows' texts as columns of
// the floor alone. As many as leaves the table in proportion to its rows, 2048 at most.
void AddTextFeatures(TableRows& rows);

}  // namespace traind
