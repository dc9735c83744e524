#include "server/domain/after_rule.h"

#include <absl/strings/str_cat.h>

#include "server/domain/names.h"

namespace traind {

absl::Status MayBeginAfter(const std::string& job, JobState state, bool any_end) {
  if (state == JobState::kSucceeded || any_end) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat("after.jobs: job ", job, " is ", Name(state),
                                                    "; with `end: any` its end will do"));
}

}  // namespace traind
