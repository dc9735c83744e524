// The version of the training code. Folds that another version trained are not reused. Raise it
// with every change after which the same spec on the same bytes trains another model.
#pragma once

namespace traind {

inline constexpr char kEngineVersion[] = "1";

}  // namespace traind
