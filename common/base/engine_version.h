// The version of the training code. Folds that another version trained are not reused. Raise it
// with every change after which the same spec on the same bytes trains another model.
#pragma once

namespace traind {

inline constexpr char kEngineVersion[] = "4";

// The version of the daemons.
inline constexpr char kTraindVersion[] = "0.1.0";

}  // namespace traind
