#include "common/data/weights/image_config.h"

#include <absl/status/status.h>
#include <absl/strings/str_cat.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>

#include "common/base/json_text.h"
#include "common/base/status_macros.h"

namespace traind {
namespace {

using Json = nlohmann::json;

constexpr int kDeepest = 32;
// The range of data.image.size.
constexpr int kLeastSize = 4, kMostSize = 1024;

std::string Shown(const Json& value) {
  constexpr size_t kMost = 60;
  return value.dump(-1, ' ', false, Json::error_handler_t::replace).substr(0, kMost);
}

template <class... What>
absl::Status Wrong(const What&... what) {
  return absl::InvalidArgumentError(absl::StrCat(what...));
}

// Keeps the values where the key is missing.
absl::Status TakeChannels(const Json& json, const char* key, double least,
                          std::array<double, 3>& values) {
  const auto found = json.find(key);
  if (found == json.end() || found->is_null()) return absl::OkStatus();
  const auto fits = [&](const Json& value) {
    return value.is_number() && value >= least && value <= 1;
  };
  if (!found->is_array() || found->size() != values.size() ||
      !std::all_of(found->begin(), found->end(), fits)) {
    return Wrong(key, ": expected three numbers from ", least, " to 1, not ", Shown(*found));
  }
  for (size_t i = 0; i < values.size(); ++i) values[i] = (*found)[i].get<double>();
  return absl::OkStatus();
}

absl::Status TakeSize(const Json& json, int& size) {
  const auto found = json.find("input_size");
  if (found == json.end() || found->is_null()) return absl::OkStatus();
  const bool three = found->is_array() && found->size() == 3 &&
                     std::all_of(found->begin(), found->end(),
                                 [](const Json& value) { return value.is_number_integer(); });
  if (!three || (*found)[0] != 3 || (*found)[1] != (*found)[2] || (*found)[1] < kLeastSize ||
      (*found)[1] > kMostSize) {
    return Wrong("input_size: expected [3, N, N] with N from ", kLeastSize, " to ", kMostSize,
                 ", not ", Shown(*found));
  }
  size = (*found)[1].get<int>();
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ImageConfig> ParseImageConfig(absl::string_view architecture,
                                             absl::string_view text) {
  const Json json = NestedDeeper(text, kDeepest)
                        ? Json()
                        : Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return Wrong("expected a JSON object");
  const auto named = json.find("architecture");
  if (named == json.end() || !named->is_string()) {
    return Wrong(
        "architecture is missing; a folder of timm's save_for_hf has it, and the weights of ",
        "torchvision are given as model.pretrained.file");
  }
  if (*named != std::string(architecture)) {
    return Wrong("architecture is ", Shown(*named), ", and model.cnn.architecture says ",
                 architecture);
  }
  // Older files have the keys at the top.
  const auto inner = json.find("pretrained_cfg");
  const Json& seen = inner != json.end() && inner->is_object() ? *inner : json;
  ImageConfig config;
  RETURN_IF_ERROR(TakeSize(seen, config.size));
  RETURN_IF_ERROR(TakeChannels(seen, "mean", 0, config.mean));
  constexpr double kLeastDeviation = 1e-3;
  RETURN_IF_ERROR(TakeChannels(seen, "std", kLeastDeviation, config.deviation));
  return config;
}

}  // namespace traind
