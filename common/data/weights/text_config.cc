#include "common/data/weights/text_config.h"

#include <absl/status/status.h>
#include <absl/strings/str_cat.h>

#include <algorithm>
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
  const Json& Value(const char* key) const {
    static const Json kNull;
    const auto found = json_.find(key);
    return found == json_.end() ? kNull : *found;
  }
  // For variants that other members of the family have.
  void Expect(const char* key, const Json& wanted) {
    if (Value(key) == wanted) return;
    Wrong(absl::StrCat(key, ": ", Shown(Value(key)), " is not supported; ", Shown(wanted), " is"));
  }

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

// The model_type of the architecture.
absl::string_view TypeOf(absl::string_view architecture) {
  return architecture == "deberta_v3" ? "deberta-v2" : architecture;
}

void ReadDistances(Reader& from, TextConfig& config) {
  from.Number("position_buckets", 4, kMostRows, config.buckets);
  int64_t farthest = -1;
  from.Number("max_relative_positions", -1, kMostRows, farthest);
  config.farthest = farthest < 1 ? config.positions : farthest;
  from.Expect("relative_attention", true);
  from.Expect("share_att_key", true);
  from.Expect("position_biased_input", false);
  from.Expect("type_vocab_size", 0);
  const Json& kinds = from.Value("pos_att_type");  // "p2c|c2p" in old files
  const std::string listed = kinds.dump();
  if (listed.find("c2p") == std::string::npos || listed.find("p2c") == std::string::npos) {
    from.Wrong(absl::StrCat("pos_att_type: ", Reader::Shown(kinds), " has not both c2p and p2c"));
  }
  if (from.Word("norm_rel_ebd", "none").find("layer_norm") == std::string::npos) {
    from.Wrong("norm_rel_ebd: only layer_norm is supported");
  }
  const Json& kernel = from.Value("conv_kernel_size");
  if (!kernel.is_null() && kernel != 0) {
    from.Wrong("conv_kernel_size: a convolution, as DeBERTa v2 has one, is not supported");
  }
  for (const char* const key : {"embedding_size", "attention_head_size"}) {
    if (!from.Value(key).is_null()) from.Wrong(absl::StrCat(key, ": is not supported"));
  }
}

double BaseOf(const Json& rotation, double missing) {
  const auto found = rotation.is_object() ? rotation.find("rope_theta") : rotation.end();
  return rotation.is_object() && found != rotation.end() && found->is_number()
             ? found->get<double>()
             : missing;
}

// Old files name every n-th layer and the two bases, new ones list the layers.
void ReadGlobalLayers(Reader& from, TextConfig& config) {
  constexpr double kUsualGlobal = 160000, kUsualLocal = 10000, kMostBase = 1e12;
  const Json& kinds = from.Value("layer_types");
  if (kinds.is_array()) {
    for (const Json& kind : kinds) config.global.push_back(kind == "full_attention");
    if (static_cast<int64_t>(config.global.size()) != config.layers) {
      from.Wrong(absl::StrCat("layer_types: has ", config.global.size(), " kinds for ",
                              config.layers, " layers"));
    }
  } else {
    int64_t every = 1;
    from.Number("global_attn_every_n_layers", 1, kMostLayers, every);
    for (int64_t k = 0; k < config.layers; ++k) config.global.push_back(k % every == 0);
  }
  int64_t window = 0;
  from.Number("local_attention", 2, kMostRows, window);
  config.window = window / 2;
  config.global_base = kUsualGlobal;
  config.local_base = kUsualLocal;
  const Json& rotations = from.Value("rope_parameters");
  if (rotations.is_object()) {
    config.global_base = BaseOf(rotations.value("full_attention", Json()), kUsualGlobal);
    config.local_base = BaseOf(rotations.value("sliding_attention", Json()), kUsualLocal);
  } else {
    from.Share("global_rope_theta", kMostBase, config.global_base);
    config.local_base = from.Value("local_rope_theta").is_null() ? config.global_base : kUsualLocal;
    from.Share("local_rope_theta", kMostBase, config.local_base);
  }
  if (!(config.global_base > 0) || !(config.local_base > 0)) from.Wrong("rope_theta: is 0");
  for (const char* const key : {"norm_bias", "attention_bias", "mlp_bias", "classifier_bias"}) {
    if (from.Flag(key)) from.Wrong(absl::StrCat(key, ": true is not supported"));
  }
  const std::string pooling = from.Word("classifier_pooling", "cls");
  config.mean = pooling == "mean";
  if (pooling != "mean" && pooling != "cls") {
    from.Wrong(absl::StrCat("classifier_pooling: '", pooling, "' is not supported"));
  }
  if (config.heads > 0 && config.width / config.heads % 2 != 0) {
    from.Wrong("a head has an odd width, which cannot be rotated");
  }
}

void ReadSizes(Reader& from, TextConfig& config) {
  const bool distilled = config.architecture == "distilbert";
  const bool deberta = config.architecture == "deberta_v3";
  const bool modern = config.architecture == "modernbert";
  from.Number("vocab_size", 1, kMostRows, config.vocabulary);
  from.Number("max_position_embeddings", 1, kMostRows, config.positions);
  from.Number(distilled ? "dim" : "hidden_size", 1, kMostWidth, config.width);
  from.Number(distilled ? "n_layers" : "num_hidden_layers", 1, kMostLayers, config.layers);
  from.Number(distilled ? "n_heads" : "num_attention_heads", 1, kMostHeads, config.heads);
  from.Number(distilled ? "hidden_dim" : "intermediate_size", 1, 4 * kMostWidth,
              config.feedforward);
  if (!distilled && !deberta && !modern) {
    from.Number("type_vocab_size", 1, kMostRows, config.token_types);
  }
  if (deberta) ReadDistances(from, config);
  if (modern) ReadGlobalLayers(from, config);
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
  if (config.architecture == "modernbert") {
    config.epsilon = 1e-5;
    from.Share("norm_eps", 1, config.epsilon);
    from.Share("attention_dropout", kMostDropout, config.dropout);
    return from.Share("classifier_dropout", kMostDropout, config.head_dropout);
  }
  config.dropout = 0.1;  // the default of the libraries' configurations
  config.epsilon = config.architecture == "deberta_v3" ? 1e-7 : 1e-12;
  if (!distilled) from.Share("layer_norm_eps", 1, config.epsilon);
  from.Share(distilled ? "dropout" : "hidden_dropout_prob", kMostDropout, config.dropout);
  config.head_dropout = distilled ? 0.2 : config.dropout;
  from.Share(distilled                             ? "seq_classif_dropout"
             : config.architecture == "deberta_v3" ? "cls_dropout"
                                                   : "classifier_dropout",
             kMostDropout, config.head_dropout);
}

void ReadActivation(Reader& from, TextConfig& config) {
  const char* const key = config.architecture == "distilbert"   ? "activation"
                          : config.architecture == "modernbert" ? "hidden_activation"
                                                                : "hidden_act";
  for (const char* const of_head : {"pooler_hidden_act", "classifier_activation"}) {
    if (const std::string name = from.Word(of_head, "gelu"); name != "gelu") {
      from.Wrong(absl::StrCat(of_head, ": '", name, "' is not supported; gelu is"));
    }
  }
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
  if (type != TypeOf(architecture)) {
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

absl::string_view TextBodyPrefix(absl::string_view architecture) {
  if (architecture == "bert") return "bert.";
  if (architecture == "roberta") return "roberta.";
  if (architecture == "distilbert") return "distilbert.";
  if (architecture == "deberta_v3") return "deberta.";
  return architecture == "modernbert" ? "model." : "";
}

}  // namespace traind
