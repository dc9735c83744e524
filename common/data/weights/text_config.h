// The sizes of a text network of Hugging Face's transformers, from its config.json.
#pragma once

#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>

#include <cstdint>
#include <string>
#include <vector>

namespace traind {

struct TextConfig {
  std::string architecture;  // bert, roberta, distilbert, deberta_v3 or modernbert
  int64_t vocabulary = 0, width = 0, layers = 0, heads = 0, feedforward = 0;
  int64_t positions = 0;       // rows of the table of positions, or the longest text without one
  int64_t first_position = 0;  // the row of a text's first token
  int64_t token_types = 0;     // rows of the table of token types; 0: there is none
  double epsilon = 0;          // of the norms
  double dropout = 0;          // of attention, and of what each layer adds to its input
  double head_dropout = 0;
  // DeBERTa's: buckets of distances in either direction, and the distance from which on all are
  // one.
  int64_t buckets = 0, farthest = 0;
  // ModernBERT's: a token of a layer that is not global sees those up to `window` away.
  std::vector<bool> global;  // [layers]
  int64_t window = 0;
  double global_base = 0, local_base = 0;  // of the rotations by which tokens know their places
  bool mean = false;  // the head reads the mean of all tokens, not the first one
  enum class Activation { kGelu, kGeluTanh, kRelu } activation = Activation::kGelu;

  // Whether tokens know their places by a table of positions alone.
  bool has_positions() const { return buckets == 0 && global.empty(); }
  // The tokens of a text, at most.
  int64_t max_tokens() const { return positions - first_position; }
};

// json: the content of a config.json. architecture: what the spec says.
// Errors: InvalidArgument names the key and what is wrong with it: another model_type, a key that
// is missing, a size out of range, or a variant that is not supported.
absl::StatusOr<TextConfig> ParseTextConfig(absl::string_view architecture, absl::string_view json);

// What the names of the body's parameters begin with; the files of a body alone leave it out.
absl::string_view TextBodyPrefix(absl::string_view architecture);

}  // namespace traind
