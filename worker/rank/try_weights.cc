#include "worker/rank/try_weights.h"

#include <absl/status/statusor.h>
#include <absl/strings/match.h>
#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_split.h>
#include <absl/strings/string_view.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "common/base/durable_file.h"
#include "common/base/job_layout.h"
#include "common/base/status_macros.h"
#include "common/job_rules/task_rules.h"
#include "worker/device/guard.h"
#include "worker/model/networks/model.h"
#include "worker/pretrained/pretrained_weights.h"
#include "worker/pretrained/weights_plan.h"
#include "worker/train/fold_shape.h"
#include "worker/train/training_spec.h"

namespace traind {
namespace {

using Json = nlohmann::json;

// The parameters of a model that is never made.
absl::StatusOr<ParameterLayout> LayoutOf(const ModelSpec& spec, const ModelShape& shape) {
  Parameters parameters;
  RETURN_IF_ERROR(Guarded([&] { return CreateModel(spec, shape, parameters).status(); }));
  return parameters.layout();
}

absl::StatusOr<std::string> TryWeights(const std::string& state_dir, const std::string& job,
                                       const std::string& table, const std::string& spec_file) {
  ASSIGN_OR_RETURN(const std::string json, ReadFile(spec_file));
  ASSIGN_OR_RETURN(const TrainingSpec spec, ParseTrainingSpec(json));
  if (!spec.pretrained.has_value()) return absl::InvalidArgumentError("no model.pretrained");
  ASSIGN_OR_RETURN(const FoldShape fold, ShapeOfFold(state_dir, table, job, 0, spec));
  ASSIGN_OR_RETURN(const ParameterLayout layout, LayoutOf(spec.model, fold.shape));
  std::vector<float> values(static_cast<size_t>(TotalSize(layout)));
  const std::string weights =
      absl::StrCat(state_dir, "/", WeightsCachePath(spec.pretrained->sha256));
  ASSIGN_OR_RETURN(
      const PretrainedReport report,
      LoadPretrained(*spec.pretrained, weights, layout, fold.pieces, absl::MakeSpan(values)));
  return report.Text();
}

// "3,32,32".
absl::StatusOr<std::vector<int64_t>> Numbers(const std::string& argument, absl::string_view text) {
  std::vector<int64_t> numbers;
  for (const absl::string_view item : absl::StrSplit(text, ',')) {
    constexpr int64_t kMost = int64_t{1} << 31;
    int64_t number = 0;
    if (!absl::SimpleAtoi(item, &number) || number < 0 || number > kMost) {
      return absl::InvalidArgumentError(
          absl::StrCat(argument, ": expected a number, or several with commas"));
    }
    numbers.push_back(number);
  }
  return numbers;
}

absl::StatusOr<ModelShape> ShapeFrom(const std::vector<std::string>& arguments) {
  ModelShape shape;
  const std::map<absl::string_view, int64_t*> single = {{"outputs", &shape.outputs},
                                                        {"numeric", &shape.numeric},
                                                        {"window", &shape.window},
                                                        {"vocabulary", &shape.vocabulary},
                                                        {"max_tokens", &shape.max_tokens}};
  const std::map<absl::string_view, std::vector<int64_t>*> lists = {
      {"cardinalities", &shape.cardinalities}, {"image", &shape.image}};
  for (const std::string& argument : arguments) {
    const size_t equals = std::min(argument.find('='), argument.size());
    const absl::string_view name = absl::string_view(argument).substr(0, equals);
    const absl::string_view value =
        absl::string_view(argument).substr(std::min(equals + 1, argument.size()));
    ASSIGN_OR_RETURN(const std::vector<int64_t> numbers, Numbers(argument, value));
    if (const auto one = single.find(name); one != single.end() && numbers.size() == 1) {
      *one->second = numbers[0];
    } else if (const auto list = lists.find(name); list != lists.end()) {
      *list->second = numbers;
    } else {
      return absl::InvalidArgumentError(
          absl::StrCat(argument,
                       ": expected outputs, numeric, window, vocabulary, max_tokens, "
                       "cardinalities or image, and a value"));
    }
  }
  return shape;
}

absl::StatusOr<ParameterLayout> ListParameters(const std::string& model,
                                               const std::vector<std::string>& arguments) {
  Json spec = {{"model", Json::parse(model, nullptr, /*allow_exceptions=*/false)}};
  if (!spec["model"].is_object() || spec["model"].size() != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat(model, ": expected JSON such as {\"text\": {\"width\": 64}}"));
  }
  const std::string network = spec["model"].begin().key(), need = NeedOfNetwork(network);
  constexpr char kData[] = "data.";
  if (absl::StartsWith(need, kData)) {
    spec["data"][need.substr(sizeof kData - 1)] = Json::object();
  }
  const bool image = need == "data.image", volume = need == "data.volume";
  if (volume) spec["task"]["type"] = "segmentation";
  ASSIGN_OR_RETURN(const TrainingSpec training, ParseTrainingSpec(spec.dump()));
  ASSIGN_OR_RETURN(ModelShape shape, ShapeFrom(arguments));
  const size_t extents = image ? 3 : volume ? 4 : 0;
  if (shape.image.size() != extents) {
    return absl::InvalidArgumentError(extents == 0
                                          ? absl::StrCat("image: is not of a model.", network)
                                          : absl::StrCat("image: a model.", network, " has ",
                                                         extents, " extents, channels first"));
  }
  return LayoutOf(training.model, shape);
}

void PutLine(const Json& line) {
  std::puts(line.dump(-1, ' ', false, Json::error_handler_t::replace).c_str());
  std::fflush(stdout);
}

}  // namespace

int TryWeightsMain(int argc, char** argv) {
  constexpr int kArguments = 6;
  if (argc != kArguments) return 2;
  const absl::StatusOr<std::string> report = TryWeights(argv[2], argv[3], argv[4], argv[5]);
  Json line;
  if (report.ok()) {
    line["report"] = *report;
  } else {
    line["error"] = std::string(report.status().message());
  }
  PutLine(line);
  return 0;
}

int ListParametersMain(int argc, char** argv) {
  if (argc < 3) {
    std::fputs("usage: trainrank list-parameters MODEL [NAME=VALUE...]\n", stderr);
    return 2;
  }
  const absl::StatusOr<ParameterLayout> layout =
      ListParameters(argv[2], std::vector<std::string>(argv + 3, argv + argc));
  if (!layout.ok()) {
    std::fprintf(stderr, "trainrank: %s\n", std::string(layout.status().message()).c_str());
    return 2;
  }
  for (const ParameterInfo& parameter : *layout) {
    std::printf("%s %s\n", parameter.name.c_str(), ShapeText(parameter.shape).c_str());
  }
  return 0;
}

}  // namespace traind
