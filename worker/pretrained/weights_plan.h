// Which tensors of a file a model's weights are taken from.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "common/data/weights/name_map.h"
#include "worker/checkpoint/safetensors.h"
#include "worker/model/networks/parameter_layout.h"

namespace traind {

struct WeightsPlan {
  struct Taken {
    size_t parameter = 0;  // in the layout
    std::vector<MapSource> sources;
    int64_t size = 0;  // its first so many values: all, but of a token table
  };
  std::vector<Taken> taken;
  std::vector<std::string> kept;     // parameters that start at random
  std::vector<std::string> differs;  // of those, by equal name, why: with both shapes
  std::vector<std::string> unused;   // tensors of the file
};

// The text encoder's table of tokens: one row per piece of its tokenizer, then one for an empty
// text.
inline constexpr char kTokenTable[] = "tokens.weight";

// map: empty: by equal names, where shapes are equal, too. pieces: of the tokenizer that the
// spec gives; 0: it gives none, so that no row of a file can be a token's. The token table
// may be given without its last row, which then starts at random.
// InvalidArgument: every mistake of the map, with semicolons between: an entry of no parameter, a
// tensor that the file does not have or has with a dtype that is none of F32, F16 and BF16, rows or
// a transposition that it cannot have, shapes that do not fit, both told; or nothing is taken.
absl::StatusOr<WeightsPlan> PlanWeights(const ParameterLayout& layout, const SafetensorsFile& file,
                                        const NameMap& map, int64_t pieces);

// "[3, 64]".
std::string ShapeText(const std::vector<int64_t>& shape);

}  // namespace traind
