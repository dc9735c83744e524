#include "common/data/text/text_normalizer.h"

#include <absl/status/status.h>
#include <absl/strings/escaping.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_replace.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "common/base/status_macros.h"
#include "common/data/text/character_map.h"
#include "common/data/text/characters.h"
#include "common/data/text/marks.h"
#include "common/data/text/tokenizer_json.h"

namespace traind {
namespace {

using Json = nlohmann::json;
using Step = TextNormalizer::Step;

class Strip final : public Step {
 public:
  Strip(bool left, bool right) : left_(left), right_(right) {}
  std::string Of(absl::string_view text) const override {
    size_t begin = 0, end = 0;  // of what is no blank
    bool blank_so_far = true;
    for (size_t at = 0; at < text.size();) {
      const Character c = FirstCharacter(text.substr(at));
      at += c.bytes;
      if (IsBlank(c.value)) {
        if (blank_so_far) begin = at;
      } else {
        blank_so_far = false;
        end = at;
      }
    }
    if (!left_) begin = 0;
    if (!right_ || blank_so_far) end = text.size();
    return std::string(text.substr(begin, end - begin));
  }

 private:
  const bool left_, right_;
};

class Lowercase final : public Step {
 public:
  std::string Of(absl::string_view text) const override {
    std::string result;
    while (!text.empty()) {
      const Character c = FirstCharacter(text);
      text.remove_prefix(c.bytes);
      AppendLower(c.value, result);
    }
    return result;
  }
};

class Nfc final : public Step {
 public:
  std::string Of(absl::string_view text) const override { return Composed(text); }
};

class Prepend final : public Step {
 public:
  explicit Prepend(std::string what) : what_(std::move(what)) {}
  std::string Of(absl::string_view text) const override {
    return text.empty() ? std::string() : absl::StrCat(what_, text);
  }

 private:
  const std::string what_;
};

class Replace final : public Step {
 public:
  Replace(std::string what, std::string by) : what_(std::move(what)), by_(std::move(by)) {}
  std::string Of(absl::string_view text) const override {
    return absl::StrReplaceAll(text, {{what_, by_}});
  }

 private:
  const std::string what_, by_;
};

// Several blanks in a row become one text.
class JoinBlanks final : public Step {
 public:
  explicit JoinBlanks(std::string by) : by_(std::move(by)) {}
  std::string Of(absl::string_view text) const override {
    std::string result;
    for (size_t at = 0; at < text.size();) {
      size_t end = at;
      while (end < text.size() && text[end] == ' ') ++end;
      if (end - at > 1) {
        result += by_;
        at = end;
      } else {
        result.push_back(text[at++]);
      }
    }
    return result;
  }

 private:
  const std::string by_;
};

// SentencePiece's map as the `tokenizers` library applies it: a short grapheme of which the map has
// a beginning is replaced as a whole, longer ones character by character.
class Precompiled final : public Step {
 public:
  explicit Precompiled(CharacterMap map) : map_(std::move(map)) {}
  std::string Of(absl::string_view text) const override {
    constexpr size_t kShort = 6;  // bytes
    std::string result;
    while (!text.empty()) {
      absl::string_view grapheme = text.substr(0, FirstGrapheme(text));
      text.remove_prefix(grapheme.size());
      if (grapheme.size() < kShort && Replaced(grapheme, result)) continue;
      while (!grapheme.empty()) {
        const absl::string_view one = grapheme.substr(0, FirstCharacter(grapheme).bytes);
        grapheme.remove_prefix(one.size());
        if (!Replaced(one, result)) absl::StrAppend(&result, one);
      }
    }
    return result;
  }

 private:
  bool Replaced(absl::string_view part, std::string& result) const {
    const CharacterMap::Prefix found = map_.Shortest(part);
    if (found.bytes > 0) absl::StrAppend(&result, found.becomes);
    return found.bytes > 0;
  }

  const CharacterMap map_;
};

absl::StatusOr<std::shared_ptr<const Step>> ReplaceOf(const Json& json) {
  const Json& pattern = MemberOf(json, "pattern");
  const std::string text = TextOf(pattern, "String"), expression = TextOf(pattern, "Regex");
  if (!text.empty()) return std::make_shared<Replace>(text, TextOf(json, "content"));
  if (expression == " {2,}") return std::make_shared<JoinBlanks>(TextOf(json, "content"));
  return absl::InvalidArgumentError(
      absl::StrCat("normalizer: the expression '", expression, "' of a Replace is not supported"));
}

absl::StatusOr<std::shared_ptr<const Step>> PrecompiledOf(const Json& json) {
  std::string bytes;
  std::optional<CharacterMap> map;
  if (absl::Base64Unescape(TextOf(json, "precompiled_charsmap"), &bytes)) {
    map = CharacterMap::Parse(bytes);
  }
  if (!map.has_value()) {
    return absl::InvalidArgumentError("normalizer: precompiled_charsmap is damaged");
  }
  return std::make_shared<Precompiled>(*std::move(map));
}

absl::StatusOr<std::shared_ptr<const Step>> StepOf(const Json& json) {
  const std::string type = TypeOfPart(json);
  if (type == "Strip") {
    return std::make_shared<Strip>(FlagOf(json, "strip_left", true),
                                   FlagOf(json, "strip_right", true));
  }
  if (type == "Lowercase") return std::make_shared<Lowercase>();
  if (type == "NFC") return std::make_shared<Nfc>();
  if (type == "Prepend") return std::make_shared<Prepend>(TextOf(json, "prepend"));
  if (type == "Replace") return ReplaceOf(json);
  if (type == "Precompiled") return PrecompiledOf(json);
  return UnsupportedPart("a normalizer", type);
}

class NormalizedPieces final : public TextPieces {
 public:
  NormalizedPieces(TextNormalizer normalizer, std::unique_ptr<TextPieces> pieces)
      : normalizer_(std::move(normalizer)), pieces_(std::move(pieces)) {}
  bool changes() const override { return true; }
  std::string Normalize(absl::string_view text) const override {
    return normalizer_.Normalize(text);
  }
  void Encode(absl::string_view normalized, std::vector<int32_t>& ids) const override {
    pieces_->Encode(normalized, ids);
  }

 private:
  const TextNormalizer normalizer_;
  const std::unique_ptr<TextPieces> pieces_;
};

}  // namespace

absl::Status TextNormalizer::Add(const Json& json) {
  if (json.is_null()) return absl::OkStatus();
  if (TypeOfPart(json) == "Sequence") {
    for (const Json& part : MemberOf(json, "normalizers")) RETURN_IF_ERROR(Add(part));
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(std::shared_ptr<const Step> step, StepOf(json));
  steps_.push_back(std::move(step));
  return absl::OkStatus();
}

absl::StatusOr<TextNormalizer> TextNormalizer::Parse(const Json& json) {
  TextNormalizer normalizer;
  RETURN_IF_ERROR(normalizer.Add(json));
  return normalizer;
}

std::string TextNormalizer::Normalize(absl::string_view text) const {
  std::string result(text);
  for (const auto& step : steps_) result = step->Of(result);
  return result;
}

std::unique_ptr<TextPieces> WithNormalizer(TextNormalizer normalizer,
                                           std::unique_ptr<TextPieces> pieces) {
  if (!normalizer.changes()) return pieces;
  return std::make_unique<NormalizedPieces>(std::move(normalizer), std::move(pieces));
}

}  // namespace traind
