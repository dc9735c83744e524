// Rules of `search`: the fields that may vary, and the values that they may have.
//
// Threads: all functions are safe.
#pragma once

#include <absl/status/status.h>
#include <absl/strings/string_view.h>

#include <functional>
#include <string>

#include "proto/job.pb.h"

namespace traind {

// Tells of each mistake: the field's path, and what is wrong with it.
// type: that of the task; empty: not known.
void CheckSearch(const v1::JobSpec& spec, const std::string& type,
                 const std::function<void(const std::string&, const std::string&)>& add);

// The kind of model of which the space names fields; empty: it names none.
std::string KindOfSpace(const v1::SearchSpec& search);

// Fills in the space of a spec whose model is chosen, as far as it is unset: the usual ranges of
// that kind of model, without the fields that the spec sets itself. Ranges become those of their
// fields' types, so int(2, 8) where uniform(2, 8) stood for a whole number. A grid without a number
// of trials gets as many as it has points.
// REQUIRES: the spec has a search without mistakes.
void ResolveSearch(v1::JobSpec& spec);

// Gives the field of a path below model or train a value, as a range writes it: "0.1", "[64, 64]".
// Errors: InvalidArgument: there is no such field, or it cannot have that value.
absl::Status SetSearched(absl::string_view path, absl::string_view value, v1::JobSpec& spec);

// The value of that field of a resolved spec; empty: it is chosen while the Job runs.
std::string SearchedValue(absl::string_view path, const v1::JobSpec& spec);

}  // namespace traind
