#include "worker/floor/floor_model_file.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/string_view.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "common/base/digest_text.h"
#include "common/base/durable_file.h"
#include "common/base/status_macros.h"
#include "common/data/table/input_schema_json.h"
#include "common/publish/floor_files.h"

namespace traind {
namespace {

using Json = nlohmann::json;

constexpr int kFormat = 1;
constexpr absl::string_view kMagic = "TRFLOOR1";
constexpr size_t kDigestBytes = 64;
constexpr size_t kSizeAt = kMagic.size() + kDigestBytes;
constexpr size_t kHeaderAt = kSizeAt + sizeof(uint64_t);

std::string PathIn(const std::string& dir) { return absl::StrCat(dir, "/", kFloorModelFile); }

template <typename T>
void Append(const std::vector<T>& values, std::string& to) {
  to.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
}

// Takes arrays from the front of the data.
class Arrays {
 public:
  explicit Arrays(absl::string_view data) : data_(data) {}

  template <typename T>
  std::vector<T> Take(size_t count) {
    if (count > data_.size() / sizeof(T)) {
      short_ = true;
      return {};
    }
    std::vector<T> values(count);
    std::memcpy(values.data(), data_.data(), count * sizeof(T));
    data_.remove_prefix(count * sizeof(T));
    return values;
  }
  // Whether the arrays were all of the data.
  bool Fit() const { return !short_ && data_.empty(); }

 private:
  absl::string_view data_;
  bool short_ = false;
};

Json ScalesJson(const std::vector<ValueScale>& scales) {
  Json list = Json::array();
  for (const ValueScale& scale : scales) {
    list.push_back({{"mean", scale.mean},
                    {"deviation", scale.deviation},
                    {"low", scale.low},
                    {"high", scale.high}});
  }
  return list;
}

std::vector<ValueScale> ScalesFromJson(const Json& list) {
  std::vector<ValueScale> scales;
  for (const Json& item : list) {
    ValueScale& scale = scales.emplace_back();
    item.at("mean").get_to(scale.mean);
    item.at("deviation").get_to(scale.deviation);
    item.at("low").get_to(scale.low);
    item.at("high").get_to(scale.high);
  }
  return scales;
}

FloorFold FoldFromJson(const Json& json, const FloorModel& model, const FloorLayout& layout,
                       Arrays& arrays) {
  const size_t words = std::min<size_t>(json.at("words").get<size_t>(), kNgramBuckets);
  FloorEncoder::State state;
  state.mean = arrays.Take<double>(layout.numbers());
  state.scale = arrays.Take<double>(layout.numbers());
  state.buckets = arrays.Take<uint32_t>(words);
  state.idf = arrays.Take<float>(words);
  json.at("word_scale").get_to(state.word_scale);
  if (std::any_of(state.buckets.begin(), state.buckets.end(),
                  [](uint32_t bucket) { return bucket >= kNgramBuckets; })) {
    state.buckets.clear();
  }
  const size_t stride = 1 + layout.numbers() + layout.switches() + words;
  FloorFold fold{FloorEncoder(std::move(state)), {}, ScalesFromJson(json.at("scales"))};
  const size_t outputs = FloorModel::OutputsOf(model.input);
  const bool classes = model.input.target_kind == TargetKind::kClasses;
  for (size_t k = 0; k < (classes ? 1 : model.input.targets.size()); ++k) {
    fold.models
        .emplace_back(FloorModel::LinkOf(model.input), layout.numbers(), layout.switches(),
                      fold.encoder.words(), outputs)
        .SetWeights(arrays.Take<float>(outputs * stride));
  }
  return fold;
}

// Checks what memory safety depends on.
bool Fits(const FloorModel& model, const Json& header) {
  const size_t outputs = model.input.outputs();
  if (outputs == 0) return false;
  if (model.folds.empty()) return model.prior.size() == outputs;
  const bool classes = model.input.target_kind == TargetKind::kClasses;
  for (size_t i = 0; i < model.folds.size(); ++i) {
    const FloorFold& fold = model.folds[i];
    if (fold.encoder.words() != header.at("folds")[i].at("words").get<size_t>()) return false;
    if (fold.scales.size() != (classes ? 0 : outputs)) return false;
  }
  return true;
}

}  // namespace

absl::Status WriteFloorModel(const std::string& dir, const FloorModel& model) {
  std::string data;
  Json folds = Json::array();
  for (const FloorFold& fold : model.folds) {
    const FloorEncoder::State& state = fold.encoder.state();
    folds.push_back({{"words", state.buckets.size()},
                     {"word_scale", state.word_scale},
                     {"scales", ScalesJson(fold.scales)}});
    Append(state.mean, data);
    Append(state.scale, data);
    Append(state.buckets, data);
    Append(state.idf, data);
    for (const LinearModel& linear : fold.models) Append(linear.weights(), data);
  }
  const Json json = {{"format", kFormat},
                     {"job", model.job},
                     {"model", model.name},
                     {"table_sha256", model.table_sha256},
                     {"input", InputSchemaJson(model.input)},
                     {"text_columns", model.input.text_columns},
                     {"most_text_bytes", model.most_text_bytes},
                     {"prior", model.prior},
                     {"folds", std::move(folds)}};
  const std::string header = json.dump(-1, ' ', false, Json::error_handler_t::replace);
  const uint64_t size = header.size();
  const absl::string_view size_bytes(reinterpret_cast<const char*>(&size), sizeof size);
  const std::string digest = Sha256Hex({size_bytes, header, data});
  return WriteFileDurably(PathIn(dir), {kMagic, digest, size_bytes, header, data});
}

absl::StatusOr<FloorModel> ReadFloorModel(const std::string& dir) {
  const std::string path = PathIn(dir);
  const absl::StatusOr<std::string> text = ReadFile(path);
  RETURN_IF_ERROR(text.status());
  const auto damaged = [&](absl::string_view what) { return Damaged(path, what); };
  const absl::string_view bytes = *text;
  uint64_t size = 0;
  if (bytes.size() < kHeaderAt || bytes.substr(0, kMagic.size()) != kMagic) {
    return damaged("its beginning is missing");
  }
  if (bytes.substr(kMagic.size(), kDigestBytes) != Sha256Hex(bytes.substr(kSizeAt))) {
    return damaged("its digest differs");
  }
  std::memcpy(&size, bytes.data() + kSizeAt, sizeof size);
  if (size > bytes.size() - kHeaderAt) return damaged("it is truncated");
  const Json json = Json::parse(bytes.substr(kHeaderAt, size), nullptr, false);
  const absl::string_view data = bytes.substr(kHeaderAt + size);
  try {
    FloorModel model;
    ASSIGN_OR_RETURN(model.input, InputSchemaFromJson(json.at("input")));
    json.at("job").get_to(model.job);
    json.at("model").get_to(model.name);
    json.at("table_sha256").get_to(model.table_sha256);
    json.at("text_columns").get_to(model.input.text_columns);
    json.at("most_text_bytes").get_to(model.most_text_bytes);
    json.at("prior").get_to(model.prior);
    const FloorLayout layout(model.input.features);
    Arrays arrays(data);
    for (const Json& fold : json.at("folds")) {
      model.folds.push_back(FoldFromJson(fold, model, layout, arrays));
    }
    if (!arrays.Fit() || !Fits(model, json)) return damaged("its parts are inconsistent");
    return model;
  } catch (const Json::exception& e) {
    return damaged(e.what());
  }
}

}  // namespace traind
