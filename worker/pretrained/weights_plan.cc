#include "worker/pretrained/weights_plan.h"

#include <absl/status/status.h>
#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>
#include <absl/strings/strip.h>

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "common/base/status_macros.h"
#include "common/data/weights/image_architectures.h"
#include "common/data/weights/text_config.h"

namespace traind {
namespace {

constexpr size_t kMostMistakes = 500;

bool IsNumber(DType dtype) {
  return dtype == DType::kF32 || dtype == DType::kF16 || dtype == DType::kBF16;
}

// Returns the shape of the part of a tensor that a source selects. InvalidArgument says
// why it cannot be used.
absl::StatusOr<std::vector<int64_t>> ShapeOf(const MapSource& source, const SafetensorsFile& file) {
  const auto wrong = [&](const auto&... what) {
    return absl::InvalidArgumentError(absl::StrCat("\"", source.tensor, "\" ", what...));
  };
  const auto found = file.tensors.find(source.tensor);
  if (found == file.tensors.end()) return wrong("is not in the file");
  const TensorView& tensor = found->second;
  std::vector<int64_t> shape = tensor.shape;
  if (!IsNumber(tensor.dtype)) {
    return wrong(ShapeText(shape), " is ", NameOf(tensor.dtype), ", not F32, F16 or BF16");
  }
  if (source.first_row > 0 || source.end_row.has_value()) {
    const int64_t end = source.end_row.value_or(shape.empty() ? 0 : shape[0]);
    if (shape.empty() || end > shape[0] || source.first_row >= end) {
      return wrong(ShapeText(shape), " has no rows ", source.first_row, " to ", end - 1);
    }
    shape[0] = end - source.first_row;
  }
  if (source.transposed) {
    if (shape.size() != 2)
      return wrong(ShapeText(shape), " is not a matrix, so it cannot be transposed");
    std::swap(shape[0], shape[1]);
  }
  return shape;
}

// Returns the shape of all sources, one after the other.
absl::StatusOr<std::vector<int64_t>> JoinedShape(const std::vector<MapSource>& sources,
                                                 const SafetensorsFile& file) {
  std::vector<int64_t> joined;
  for (size_t i = 0; i < sources.size(); ++i) {
    ASSIGN_OR_RETURN(const std::vector<int64_t> shape, ShapeOf(sources[i], file));
    if (i == 0) {
      joined = shape;
      continue;
    }
    if (shape.empty() || shape.size() != joined.size() ||
        !std::equal(shape.begin() + 1, shape.end(), joined.begin() + 1)) {
      return absl::InvalidArgumentError(absl::StrCat("\"", sources[i].tensor, "\" ",
                                                     ShapeText(shape), " cannot follow ",
                                                     ShapeText(joined), " along the first axis"));
    }
    if (__builtin_add_overflow(joined[0], shape[0], &joined[0])) {
      return absl::InvalidArgumentError("the sources have more rows than can be counted");
    }
  }
  return joined;
}

// The shape of the token table without the row of empty texts.
std::vector<int64_t> PieceRows(std::vector<int64_t> shape) {
  if (!shape.empty()) --shape[0];
  return shape;
}

std::string NamesOf(const std::vector<MapSource>& sources) {
  return absl::StrJoin(sources, ", ", [](std::string* out, const MapSource& source) {
    absl::StrAppend(out, "\"", source.tensor, "\"");
  });
}

// Whether every file of the architecture has the parameter.
bool IsOfBody(absl::string_view parameter, absl::string_view architecture) {
  if (IsOfLora(parameter)) return false;
  if (const ImageArchitecture* const of_images = FindImageArchitecture(architecture)) {
    return !absl::StartsWith(parameter, of_images->last_layer) &&
           !absl::StartsWith(parameter, "embeddings.");
  }
  const absl::string_view body = TextBodyPrefix(architecture);
  return !body.empty() && absl::ConsumePrefix(&parameter, body) &&
         !absl::StartsWith(parameter, "pooler.");
}

class Planner {
 public:
  Planner(const ParameterLayout& layout, const SafetensorsFile& file, const NameMap& map,
          int64_t pieces, absl::string_view architecture)
      : layout_(layout), file_(file), map_(map), pieces_(pieces), architecture_(architecture) {}

  absl::StatusOr<WeightsPlan> Plan() {
    std::vector<std::string> names;
    for (const ParameterInfo& parameter : layout_) names.push_back(parameter.name);
    for (const std::string& pattern : map_.Unmatched(names)) {
      Mistake(absl::StrCat(pattern, ": the model has no such parameter"));
    }
    for (size_t k = 0; k < layout_.size(); ++k) {
      if (!architecture_.empty()) {
        AssignByArchitecture(k);
      } else if (map_.empty()) {
        AssignByName(k);
      } else {
        AssignByMap(k);
      }
    }
    if (mistakes_.empty() && plan_.taken.empty()) {
      Mistake(absl::StrCat("no tensor of the file is used: ", Difference()));
    }
    if (!mistakes_.empty()) return Refusal();
    for (const auto& [name, tensor] : file_.tensors) {
      // PyTorch's batch norms count their batches, which matters without a momentum alone.
      const bool counts = absl::EndsWith(name, ".num_batches_tracked");
      if (named_.count(name) == 0 && !counts) plan_.unused.push_back(name);
    }
    return std::move(plan_);
  }

 private:
  void Mistake(std::string line) { mistakes_.push_back(std::move(line)); }

  absl::Status Refusal() {
    const size_t more = mistakes_.size() > kMostMistakes ? mistakes_.size() - kMostMistakes : 0;
    mistakes_.resize(mistakes_.size() - more);
    if (more > 0) Mistake(absl::StrCat("and ", more, " more"));
    return absl::InvalidArgumentError(absl::StrJoin(mistakes_, "; "));
  }

  std::string Difference() const {
    if (!plan_.differs.empty()) return absl::StrJoin(plan_.differs, "; ");
    if (!map_.empty()) return "the map contains nothing but skips";
    return "no tensor has the name of a parameter; model.pretrained.map can assign them";
  }

  void AssignByName(size_t k) {
    const ParameterInfo& parameter = layout_[k];
    MapSource source;
    source.tensor = parameter.name;
    const auto there = file_.tensors.find(parameter.name);
    if (there == file_.tensors.end()) return plan_.kept.push_back(parameter.name);
    const absl::StatusOr<std::vector<int64_t>> shape = ShapeOf(source, file_);
    const bool token = parameter.name == kTokenTable && pieces_ == 0;
    if (!token && shape.ok() && *shape == parameter.shape) return Assign(k, {std::move(source)});
    named_.insert(source.tensor);
    plan_.kept.push_back(parameter.name);
    plan_.differs.push_back(
        !shape.ok() ? std::string(shape.status().message())
        : token ? absl::StrCat(parameter.name, " belongs to tokens that each fold learns itself")
                : absl::StrCat(parameter.name, " is ", ShapeText(parameter.shape), " here, but ",
                               ShapeText(*shape), " in the file"));
  }

  void AssignByArchitecture(size_t k) {
    const ParameterInfo& parameter = layout_[k];
    MapSource source;
    source.tensor = FileNameOf(parameter.name, architecture_, file_);
    const bool required = IsOfBody(parameter.name, architecture_);
    if (!required && file_.tensors.count(source.tensor) == 0) {
      return plan_.kept.push_back(parameter.name);
    }
    const absl::StatusOr<std::vector<int64_t>> shape = ShapeOf(source, file_);
    if (shape.ok() && *shape == parameter.shape) return Assign(k, {std::move(source)});
    const std::string why =
        shape.ok() ? absl::StrCat(source.tensor, " is ", ShapeText(*shape), " in the file, but ",
                                  ShapeText(parameter.shape), " in this network")
                   : std::string(shape.status().message());
    if (required) return Mistake(why);
    named_.insert(source.tensor);
    plan_.kept.push_back(parameter.name);
    plan_.differs.push_back(why);
  }

  void AssignByMap(size_t k) {
    const ParameterInfo& parameter = layout_[k];
    absl::StatusOr<std::optional<NameMap::Match>> match = map_.Find(parameter.name);
    if (!match.ok()) return Mistake(std::string(match.status().message()));
    if (!match->has_value() || (*match)->skip) return plan_.kept.push_back(parameter.name);
    std::vector<MapSource>& sources = (*match)->sources;
    const auto wrong = [&](absl::string_view what) {
      Mistake(absl::StrCat(parameter.name, " ", ShapeText(parameter.shape), ": ", what));
    };
    if (parameter.name == kTokenTable && pieces_ == 0) {
      return wrong(
          "each fold learns its own tokens, so rows of a file have no meaning without "
          "data.text.model_file");
    }
    const absl::StatusOr<std::vector<int64_t>> shape = JoinedShape(sources, file_);
    if (!shape.ok()) return wrong(shape.status().message());
    const bool pieces = parameter.name == kTokenTable && *shape == PieceRows(parameter.shape);
    if (*shape == parameter.shape || pieces) return Assign(k, std::move(sources));
    wrong(absl::StrCat(
        NamesOf(sources), sources.size() > 1 ? " together are " : " is ", ShapeText(*shape),
        parameter.name == kTokenTable
            ? absl::StrCat(" (the tokenizer has ", pieces_, " pieces, NAME[0:", pieces_,
                           "] are a tensor's first rows)")
            : ""));
  }

  void Assign(size_t k, std::vector<MapSource> sources) {
    WeightsPlan::Taken taken;
    taken.parameter = k;
    for (const MapSource& source : sources) {
      named_.insert(source.tensor);
      const TensorView& tensor = file_.tensors.at(source.tensor);
      const int64_t all = static_cast<int64_t>(tensor.data.size()) / SizeOf(tensor.dtype);
      const int64_t rows = tensor.shape.empty() ? 1 : tensor.shape[0];
      taken.size += rows == 0 ? 0 : all / rows * (source.end_row.value_or(rows) - source.first_row);
    }
    taken.sources = std::move(sources);
    plan_.taken.push_back(std::move(taken));
  }

  const ParameterLayout& layout_;
  const SafetensorsFile& file_;
  const NameMap& map_;
  const int64_t pieces_;
  const absl::string_view architecture_;
  WeightsPlan plan_;
  std::set<std::string> named_;  // tensors that are used, or that `differs` names
  std::vector<std::string> mistakes_;
};

}  // namespace

std::string ShapeText(const std::vector<int64_t>& shape) {
  return absl::StrCat("[", absl::StrJoin(shape, ", "), "]");
}

absl::StatusOr<WeightsPlan> PlanWeights(const ParameterLayout& layout, const SafetensorsFile& file,
                                        const NameMap& map, int64_t pieces,
                                        absl::string_view architecture) {
  return Planner(layout, file, map, pieces, architecture).Plan();
}

std::string FileNameOf(absl::string_view parameter, absl::string_view architecture,
                       const SafetensorsFile& file) {
  absl::string_view alone = parameter;
  absl::ConsumePrefix(&alone, TextBodyPrefix(architecture));
  for (const absl::string_view name : {parameter, alone}) {
    for (const auto& [now, before] :
         {std::make_pair("", ""), std::make_pair("LayerNorm.weight", "LayerNorm.gamma"),
          std::make_pair("LayerNorm.bias", "LayerNorm.beta")}) {
      absl::string_view stem = name;
      if (!absl::ConsumeSuffix(&stem, now)) continue;
      std::string found = absl::StrCat(stem, before);
      if (file.tensors.count(found) > 0) return found;
    }
  }
  return std::string(parameter);
}

}  // namespace traind
