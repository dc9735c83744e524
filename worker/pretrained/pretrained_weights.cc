#include "worker/pretrained/pretrained_weights.h"

#include <absl/status/status.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "common/base/durable_file.h"
#include "common/base/status_macros.h"
#include "common/data/table/mapped_file.h"
#include "common/data/weights/name_map.h"
#include "worker/checkpoint/safetensors.h"
#include "worker/pretrained/float_values.h"
#include "worker/pretrained/weights_plan.h"

namespace traind {
namespace {

absl::Status Wrong(const PretrainedSpec& spec, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("model.pretrained: ", spec.file, ": ", what));
}

// Transposes [rows, columns] to [columns, rows].
std::vector<float> Transposed(const std::vector<float>& from, size_t rows) {
  std::vector<float> to(from.size());
  const size_t columns = rows == 0 ? 0 : from.size() / rows;
  for (size_t i = 0; i < rows; ++i) {
    for (size_t k = 0; k < columns; ++k) to[k * rows + i] = from[i * columns + k];
  }
  return to;
}

// The values of a source in the order of the parameter.
std::vector<float> ValuesOf(const MapSource& source, const TensorView& tensor) {
  const int64_t rows = tensor.shape.empty() ? 1 : tensor.shape[0];
  const size_t row = rows == 0 ? 0 : tensor.data.size() / static_cast<size_t>(rows);
  const auto first = static_cast<size_t>(source.first_row);
  const size_t count = static_cast<size_t>(source.end_row.value_or(rows)) - first;
  const absl::string_view data = tensor.data.substr(first * row, count * row);
  std::vector<float> values(data.size() / static_cast<size_t>(SizeOf(tensor.dtype)));
  ToFloats(tensor.dtype, data, absl::MakeSpan(values));
  return source.transposed ? Transposed(values, count) : values;
}

// Counts the values that are not finite, as a message; "" if there are none.
std::string NotFinite(const std::string& name, const std::vector<float>& values) {
  int64_t nan = 0, infinite = 0;
  for (const float value : values) {
    if (std::isnan(value)) ++nan;
    if (std::isinf(value)) ++infinite;
  }
  if (nan + infinite == 0) return "";
  return absl::StrCat("\"", name, "\": ", nan, " of its ", values.size(), " values are NaN and ",
                      infinite, " are infinite");
}

std::string Some(const std::vector<std::string>& names, size_t most) {
  std::vector<std::string> shown(
      names.begin(), names.begin() + static_cast<int64_t>(std::min(most, names.size())));
  const size_t more = names.size() - shown.size();
  return absl::StrCat(absl::StrJoin(shown, ", "),
                      more > 0 ? absl::StrCat(" and ", more, " more") : "");
}

}  // namespace

std::string PretrainedReport::Share() const { return absl::StrCat(taken, "/", parameters); }

std::string PretrainedReport::Text(size_t most) const {
  std::string text = absl::StrCat(taken, " of ", parameters, " parameters (", taken_values, " of ",
                                  values, " numbers) come from the file");
  if (!kept.empty()) absl::StrAppend(&text, "; these start at random: ", Some(kept, most));
  if (!differs.empty()) absl::StrAppend(&text, " (", Some(differs, most), ")");
  if (!unused.empty()) absl::StrAppend(&text, "; unused tensors of the file: ", Some(unused, most));
  return text;
}

absl::StatusOr<PretrainedReport> LoadPretrained(const PretrainedSpec& spec, const std::string& path,
                                                const ParameterLayout& layout, int64_t pieces,
                                                absl::Span<float> values) {
  ASSIGN_OR_RETURN(const std::unique_ptr<MappedFile> mapped, MappedFile::Open(path));
  if (Sha256Hex(mapped->bytes()) != spec.sha256) {
    return Wrong(spec, absl::StrCat(path, " is not the file that was submitted"));
  }
  const absl::StatusOr<SafetensorsFile> file = ParseSafetensors(mapped->bytes());
  if (!file.ok()) return Wrong(spec, file.status().message());
  ASSIGN_OR_RETURN(const NameMap map, NameMap::Parse(spec.map));
  absl::StatusOr<WeightsPlan> plan = PlanWeights(layout, *file, map, pieces, spec.architecture);
  if (!plan.ok()) return Wrong(spec, plan.status().message());
  std::vector<size_t> begins;
  size_t begin = 0;
  for (const ParameterInfo& parameter : layout) {
    begins.push_back(begin);
    begin += static_cast<size_t>(parameter.size);
  }
  PretrainedReport report;
  report.parameters = static_cast<int64_t>(layout.size());
  report.values = TotalSize(layout);
  std::vector<std::string> mistakes;
  for (const WeightsPlan::Taken& taken : plan->taken) {
    size_t at = begins[taken.parameter];
    for (const MapSource& source : taken.sources) {
      const std::vector<float> part = ValuesOf(source, file->tensors.at(source.tensor));
      if (std::string mistake = NotFinite(source.tensor, part); !mistake.empty()) {
        mistakes.push_back(std::move(mistake));
      }
      std::copy(part.begin(), part.end(), values.begin() + static_cast<int64_t>(at));
      at += part.size();
    }
    ++report.taken;
    report.taken_values += taken.size;
  }
  if (!mistakes.empty()) return Wrong(spec, absl::StrJoin(mistakes, "; "));
  report.kept = std::move(plan->kept);
  report.differs = std::move(plan->differs);
  report.unused = std::move(plan->unused);
  return report;
}

}  // namespace traind
