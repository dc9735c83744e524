// The names that the parameters of BERT and its relatives have in Hugging Face's transformers.
#pragma once

#include <absl/strings/string_view.h>

#include <cstdint>
#include <string>

namespace traind {

// A layer's names, under the layer's own; each has .weight and .bias.
struct BertLayerNames {
  const char* query;
  const char* key;
  const char* value;
  const char* attention_output;
  const char* attention_norm;
  const char* linear1;
  const char* linear2;
  const char* norm;
};

struct BertNames {
  const char* architecture;
  const char* layer;  // before a layer's number
  BertLayerNames in_layer;
  const char* pooler;      // of the layer over a text's first token
  const char* classifier;  // of the output layer

  std::string Embedding(const char* name) const;
  std::string Layer(int64_t k, const char* name) const;
};

// REQUIRES: architecture is bert, roberta, distilbert or deberta_v3.
const BertNames& BertNamesOf(absl::string_view architecture);

}  // namespace traind
