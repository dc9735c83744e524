#pragma once

namespace traind {

inline constexpr char kClientVersion[] = "0.1.0";

}  // namespace traind
