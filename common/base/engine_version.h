// The version of what trains: folds of another one are not taken over. It grows with
// every change after which the same spec on the same bytes trains another model.
#pragma once

namespace traind {

inline constexpr char kEngineVersion[] = "1";

}  // namespace traind
