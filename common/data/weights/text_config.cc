#include "common/data/weights/text_config.h"

#include <absl/status/status.h>
#include <absl/strings/str_cat.h>

#include <nlohmann/json.hpp>

#include "common/base/json_text.h"
#include "common/base/status_macros.h"

namespace traind {
namespace {

using Json = nlohmann::json;

constexpr int kDeepest = 32;
// Far above every network whose weights are public, and low enough that products fit 64 bits.
constexpr int64_t kMostRows = 4'000'000, kMostWidth = 16'384, kMostLayers = 200, kMostHeads = 256;

class Reader {
 public:
  explicit Reader(const Json& json) : json_(json) {}

  void Number(const char* key, int64_t least, int64_t most, int64_t& value) {
    const auto found = json_.find(key);
    if (found == json_.end()) return Wrong(absl::StrCat(key, " is missing"));
    if (!found->is_number_integer() || *found < least || *found > most) {
      return Wrong(absl::StrCat(key, ": expected a whole number from ", least, " to ", most,
                                ", not ", Shown(*found)));
    }
    value = found->get<int64_t>();
  }

  // Keeps the value where the key is missing or null.
  void Share(const char* key, double most, double& value) {
    const auto found = json_.find(key);
    if (found == json_.end() || found->is_null()) return;
    if (!found->is_number() || !(*found >= 0) || !(*found <= most)) {
      return Wrong(
          absl::StrCat(key, ": expected a number from 0 to ", most, ", not ", Shown(*found)));
    }
    value = found->get<double>();
  }

  std::string Word(const char* key, const char* missing) {
    const auto found = json_.find(key);
    if (found == json_.end() || found->is_null()) return missing;
    return found->is_string() ? found->get<std::string>() : Shown(*found);
  }

  bool Flag(const char* key) { return json_.value(key, Json(false)) == Json(true); }

  void Wrong(std::string what) {
    if (status_.ok()) status_ = absl::InvalidArgumentError(what);
  }
  const absl::Status& status() const { return status_; }

  static std::string Shown(const Json& value) {
    constexpr size_t kMost = 40;
    return value.dump(-1, ' ', false, Json::error_handler_t::replace).substr(0, kMost);
  }

 private:
  const Json& json_;
  absl::Status status_;
};

void ReadSizes(Reader& from, TextConfig& config) {
  const bool distilled = config.architecture == "distilbert";
  from.Number("vocab_size", 1, kMostRows, config.vocabulary);
  from.Number("max_position_embeddings", 1, kMostRows, config.positions);
  from.Number(distilled ? "dim" : "hidden_size", 1, kMostWidth, config.width);
  from.Number(distilled ? "n_layers" : "num_hidden_layers", 1, kMostLayers, config.layers);
  from.Number(distilled ? "n_heads" : "num_attention_heads", 1, kMostHeads, config.heads);
  from.Number(distilled ? "hidden_dim" : "intermediate_size", 1, 4 * kMostWidth,
              config.feedforward);
  if (!distilled) from.Number("type_vocab_size", 1, kMostRows, config.token_types);
  if (config.architecture == "roberta") {
    from.Number("pad_token_id", 0, kMostRows, config.first_position);
    ++config.first_position;
  }
  if (!from.status().ok()) return;
  if (config.width % config.heads != 0) {
    from.Wrong(absl::StrCat(config.heads, " heads do not divide a width of ", config.width));
  }
  constexpr int64_t kFewestTokens = 4;
  if (config.max_tokens() < kFewestTokens) {
    from.Wrong(absl::StrCat("max_position_embeddings leaves ", config.max_tokens(),
                            " positions for a text"));
  }
}

void ReadRates(Reader& from, TextConfig& config) {
  constexpr double kMostDropout = 0.95;
  const bool distilled = config.architecture == "distilbert";
  config.dropout = 0.1;  // the default of the libraries' configurations
  config.epsilon = 1e-12;
  if (!distilled) from.Share("layer_norm_eps", 1, config.epsilon);
  from.Share(distilled ? "dropout" : "hidden_dropout_prob", kMostDropout, config.dropout);
  config.head_dropout = distilled ? 0.2 : config.dropout;
  from.Share(distilled ? "seq_classif_dropout" : "classifier_dropout", kMostDropout,
             config.head_dropout);
}

void ReadActivation(Reader& from, TextConfig& config) {
  const char* const key = config.architecture == "distilbert" ? "activation" : "hidden_act";
  const std::string name = from.Word(key, "gelu");
  if (name == "gelu") {
    config.activation = TextConfig::Activation::kGelu;
  } else if (name == "gelu_new" || name == "gelu_pytorch_tanh") {
    config.activation = TextConfig::Activation::kGeluTanh;
  } else if (name == "relu") {
    config.activation = TextConfig::Activation::kRelu;
  } else {
    from.Wrong(absl::StrCat(key, ": '", name, "' is not supported; gelu, gelu_new and relu are"));
  }
}

}  // namespace

absl::StatusOr<TextConfig> ParseTextConfig(absl::string_view architecture, absl::string_view text) {
  const Json json = NestedDeeper(text, kDeepest)
                        ? Json()
                        : Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return absl::InvalidArgumentError("is not a JSON object");
  Reader from(json);
  const std::string type = from.Word("model_type", "");
  if (type != architecture) {
    return absl::InvalidArgumentError(
        type.empty() ? absl::StrCat("has no model_type; a ", architecture, " has one")
                     : absl::StrCat("has model_type '", type, "', but model.text.architecture is ",
                                    architecture));
  }
  TextConfig config;
  config.architecture = std::string(architecture);
  ReadSizes(from, config);
  ReadRates(from, config);
  ReadActivation(from, config);
  const std::string positions = from.Word("position_embedding_type", "absolute");
  if (positions != "absolute") {
    from.Wrong(
        absl::StrCat("position_embedding_type: '", positions, "' is not supported; absolute is"));
  }
  if (from.Flag("is_decoder")) from.Wrong("is_decoder: a decoder is not supported");
  RETURN_IF_ERROR(from.status());
  return config;
}

}  // namespace traind
