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
std::string RowsText(double rows);
// In what is trained, or in the reserve by a good part of the window. An estimate that was there
// before makes no difference, because it follows every wave of the machine's load.
bool Differs(const Plan& plan, const Plan& last, absl::Duration window);

}  // namespace traind
