// The sizes of a text network of Hugging Face's transformers, from its config.json.
#pragma once

#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>

#include <cstdint>
#include <string>

namespace traind {

struct TextConfig {
  std::string architecture;  // bert, roberta or distilbert
  int64_t vocabulary = 0, width = 0, layers = 0, heads = 0, feedforward = 0;
  int64_t positions = 0;       // rows of the table of positions
  int64_t first_position = 0;  // the row of a text's first token
  int64_t token_types = 0;     // rows of the table of token types; 0: there is none
  double epsilon = 0;          // of the norms
  double dropout = 0;          // of attention, and of what each layer adds to its input
  double head_dropout = 0;
  enum class Activation { kGelu, kGeluTanh, kRelu } activation = Activation::kGelu;

  // The tokens of a text, at most.
  int64_t max_tokens() const { return positions - first_position; }
};

// json: the content of a config.json. architecture: what the spec says.
// Errors: InvalidArgument names the key and what is wrong with it: another model_type, a key that
// is missing, a size out of range, or a variant that is not supported.
absl::StatusOr<TextConfig> ParseTextConfig(absl::string_view architecture, absl::string_view json);

}  // namespace traind
