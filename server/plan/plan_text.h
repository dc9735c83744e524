// Words for what people read of Plans, and which change is worth a revision.
// Threads: safe, pure.
#pragma once

#include <absl/strings/string_view.h>

#include <string>

#include "server/domain/job.h"

namespace traind {

// "1 fold", "5 folds".
std::string Count(int n, absl::string_view noun);
// "40 % of the rows".
std::string RowsText(double row_share);
// In more than small figures.
bool Differs(const Plan& plan, const Plan& last);

}  // namespace traind
