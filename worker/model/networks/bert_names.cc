#include "worker/model/networks/bert_names.h"

#include <absl/strings/str_cat.h>

#include "common/data/weights/text_config.h"

namespace traind {
namespace {

constexpr BertLayerNames kOfBert = {"attention.self.query",
                                    "attention.self.key",
                                    "attention.self.value",
                                    "attention.output.dense",
                                    "attention.output.LayerNorm",
                                    "intermediate.dense",
                                    "output.dense",
                                    "output.LayerNorm"};
constexpr BertLayerNames kOfDistilbert = {
    "attention.q_lin", "attention.k_lin", "attention.v_lin", "attention.out_lin",
    "sa_layer_norm",   "ffn.lin1",        "ffn.lin2",        "output_layer_norm"};

constexpr BertLayerNames kOfDeberta = {"attention.self.query_proj",
                                       "attention.self.key_proj",
                                       "attention.self.value_proj",
                                       "attention.output.dense",
                                       "attention.output.LayerNorm",
                                       "intermediate.dense",
                                       "output.dense",
                                       "output.LayerNorm"};

constexpr BertNames kBert = {"bert", "encoder.layer.", kOfBert, "bert.pooler.dense", "classifier"};
constexpr BertNames kRoberta = {"roberta", "encoder.layer.", kOfBert, "classifier.dense",
                                "classifier.out_proj"};
constexpr BertNames kDistilbert = {"distilbert", "transformer.layer.", kOfDistilbert,
                                   "pre_classifier", "classifier"};
constexpr BertNames kDeberta = {"deberta_v3", "encoder.layer.", kOfDeberta, "pooler.dense",
                                "classifier"};

}  // namespace

std::string BertNames::Embedding(const char* name) const {
  return absl::StrCat(TextBodyPrefix(architecture), "embeddings.", name);
}

std::string BertNames::Layer(int64_t k, const char* name) const {
  return absl::StrCat(TextBodyPrefix(architecture), layer, k, ".", name);
}

const BertNames& BertNamesOf(absl::string_view architecture) {
  if (architecture == "roberta") return kRoberta;
  if (architecture == "deberta_v3") return kDeberta;
  return architecture == "distilbert" ? kDistilbert : kBert;
}

}  // namespace traind
