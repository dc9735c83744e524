// Reads lines "PARAMETER: TENSORS" as a map of weights, and the bytes behind a line "--" as the
// safetensors file that it maps from.
#include <absl/strings/str_split.h>

#include <map>
#include <string>

#include "common/data/weights/name_map.h"
#include "tests/fuzz/check.h"
#include "worker/checkpoint/safetensors.h"
#include "worker/pretrained/weights_plan.h"

namespace {

const traind::ParameterLayout& Layout() {
  static const auto& layout = *new traind::ParameterLayout{
      {"tokens.weight", {6, 2}, 12},     {"layers.0.weight", {4, 2}, 8},
      {"layers.0.bias", {4}, 4},         {"layers.12.attention.in.weight", {6, 2}, 12},
      {"layers.12.norm.weight", {2}, 2}, {"output.weight", {2, 4}, 8},
  };
  return layout;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace traind;
  const absl::string_view bytes = Bytes(data, size);
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(bytes, absl::MaxSplits("\n--\n", 1));
  std::map<std::string, std::string> entries;
  for (const absl::string_view line : absl::StrSplit(parts.first, '\n', absl::SkipEmpty())) {
    const std::pair<std::string, std::string> entry =
        absl::StrSplit(line, absl::MaxSplits(": ", 1));
    entries.insert(entry);
  }
  const auto map = NameMap::Parse(entries);
  if (!map.ok()) return 0;
  const auto file = ParseSafetensors(parts.second);
  const auto plan = PlanWeights(Layout(), file.ok() ? *file : SafetensorsFile(), *map, 5);
  if (!plan.ok()) return 0;
  for (const WeightsPlan::Taken& taken : plan->taken) {
    Check(taken.parameter < Layout().size(), "a parameter is one of the layout");
    Check(taken.size > 0 && taken.size <= Layout()[taken.parameter].size, "its values fit");
    int64_t values = 0;
    for (const MapSource& source : taken.sources) {
      const auto found = file->tensors.find(source.tensor);
      Check(found != file->tensors.end(), "a source is a tensor of the file");
      const std::vector<int64_t>& shape = found->second.shape;
      const int64_t rows = shape.empty() ? 1 : shape[0];
      const int64_t end = source.end_row.value_or(rows);
      Check(source.first_row >= 0 && source.first_row <= end && end <= rows, "rows are in range");
      int64_t row_size = 1;
      for (size_t i = 1; i < shape.size(); ++i) row_size *= shape[i];
      values += (end - source.first_row) * row_size;
    }
    Check(values == taken.size, "the sources have as many values as are taken");
  }
  return 0;
}
