// The steps that change a text before it is cut, as a tokenizer.json lists them.
#pragma once

#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "common/data/text/text_pieces.h"

namespace traind {

// Threads: immutable.
class TextNormalizer {
 public:
  // json: a normalizer, or null for none. InvalidArgument: it has a step that is not supported.
  static absl::StatusOr<TextNormalizer> Parse(const nlohmann::json& json);

  bool changes() const { return !steps_.empty(); }
  std::string Normalize(absl::string_view text) const;

  class Step {
   public:
    virtual ~Step() = default;
    virtual std::string Of(absl::string_view text) const = 0;
  };

 private:
  absl::Status Add(const nlohmann::json& json);

  std::vector<std::shared_ptr<const Step>> steps_;
};

// The same pieces, of texts that are normalized first.
std::unique_ptr<TextPieces> WithNormalizer(TextNormalizer normalizer,
                                           std::unique_ptr<TextPieces> pieces);

}  // namespace traind
