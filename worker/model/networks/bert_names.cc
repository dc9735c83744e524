#include "worker/model/networks/bert_names.h"

#include <absl/strings/str_cat.h>

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

constexpr BertNames kBert = {"bert.", "encoder.layer.", kOfBert, "bert.pooler.dense", "classifier"};
constexpr BertNames kRoberta = {"roberta.", "encoder.layer.", kOfBert, "classifier.dense",
                                "classifier.out_proj"};
constexpr BertNames kDistilbert = {"distilbert.", "transformer.layer.", kOfDistilbert,
                                   "pre_classifier", "classifier"};

}  // namespace

std::string BertNames::Embedding(const char* name) const {
  return absl::StrCat(base, "embeddings.", name);
}

std::string BertNames::Layer(int64_t k, const char* name) const {
  return absl::StrCat(base, layer, k, ".", name);
}

const BertNames& BertNamesOf(absl::string_view architecture) {
  if (architecture == "roberta") return kRoberta;
  return architecture == "distilbert" ? kDistilbert : kBert;
}

}  // namespace traind
