// Assigns the tensors of a file to the parameters of a model.
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
    size_t parameter = 0;  // index in the layout
    std::vector<MapSource> sources;
    int64_t size =
        0;  // number of leading values that come from the file: all, except for a token table
  };
  std::vector<Taken> taken;
  std::vector<std::string> kept;     // names of parameters that start at random
  std::vector<std::string> differs;  // why tensors of equal names do not fit, with both shapes
  std::vector<std::string> unused;   // names of the file's other tensors
};

// The text encoder's table of tokens: one row per piece of its tokenizer, then one for an empty
// text.
inline constexpr char kTokenTable[] = "tokens.weight";

// An empty map assigns tensors to parameters with the same name and shape. pieces: the number
// of pieces of the tokenizer that the spec gives; 0: it gives none, so no row of a file can
// belong to a token. The token table may come without its last row, which then starts at
// random.
// Errors: InvalidArgument lists all mistakes of the map, separated by semicolons: a pattern
// without a parameter, a tensor that the file lacks, a dtype other than F32, F16 and BF16, rows
// or a transposition that the tensor does not have, or shapes (both are named) that do not fit.
// Also if no parameter comes from the file.
// architecture: of a network of another library, whose parameters are found under any name that
// the library gives them (FileNameOf); all that it begins, such as "bert.", must be in the file,
// but for those of its head.
absl::StatusOr<WeightsPlan> PlanWeights(const ParameterLayout& layout, const SafetensorsFile& file,
                                        const NameMap& map, int64_t pieces,
                                        absl::string_view architecture = "");

// Returns the name that a parameter of a network of Hugging Face's transformers has in a file: its
// own, or without the architecture before it, as in a file of the encoder alone; or with gamma
// and beta for the weight and bias of a norm, as in old files. Its own if the file has none.
std::string FileNameOf(absl::string_view parameter, absl::string_view architecture,
                       const SafetensorsFile& file);

// The shape as text, such as "[3, 64]".
std::string ShapeText(const std::vector<int64_t>& shape);

}  // namespace traind
