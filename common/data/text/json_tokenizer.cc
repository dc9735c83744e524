#include "common/data/text/json_tokenizer.h"

#include <absl/status/status.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_split.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "common/base/json_text.h"
#include "common/base/status_macros.h"
#include "common/data/text/text_normalizer.h"
#include "common/data/text/tokenizer_json.h"

namespace traind {

using Json = nlohmann::json;

namespace {

constexpr int kDeepest = 64;
constexpr int32_t kMostIds = 4'000'000;

absl::Status Wrong(absl::string_view what) { return absl::InvalidArgumentError(what); }

bool IsId(const Json& value) { return value.is_number_integer() && value >= 0 && value < kMostIds; }

}  // namespace

// Reads the parts of a file into a tokenizer.
class JsonTokenizerReader {
 public:
  JsonTokenizerReader(const Json& json, JsonTokenizer& to) : json_(json), to_(to) {}

  absl::Status Read() {
    if (!json_.is_object()) return Wrong("is not a JSON object");
    const Json& model = MemberOf(json_, "model");
    std::string type = TypeOfPart(model);
    if (type.empty() && MemberOf(model, "merges").is_array()) type = "BPE";  // of old versions
    if (type.empty() && model.contains("max_input_chars_per_word")) type = "WordPiece";
    if (type == "Unigram") {
      RETURN_IF_ERROR(ReadUnigram(model));
    } else if (type == "WordPiece" || type == "BPE") {
      RETURN_IF_ERROR(ReadVocabulary(model));
      RETURN_IF_ERROR(type == "BPE" ? ReadBpe(model) : ReadWordPieces(model));
    } else {
      return UnsupportedPart("a model", type);
    }
    RETURN_IF_ERROR(ReadAddedTokens());
    return ReadTemplate();
  }

 private:
  absl::Status ReadVocabulary(const Json& model) {
    const Json& vocabulary = MemberOf(model, "vocab");
    if (!vocabulary.is_object() || vocabulary.empty()) return Wrong("model.vocab is missing");
    for (const auto& [piece, id] : vocabulary.items()) {
      if (!IsId(id)) return Wrong(absl::StrCat("model.vocab: '", piece, "' has no id"));
      vocabulary_.emplace(piece, id.get<int32_t>());
      to_.size_ = std::max(to_.size_, id.get<int32_t>() + 1);
    }
    return absl::OkStatus();
  }

  absl::Status ReadWordPieces(const Json& model) {
    WordPieceOptions options;
    const Json& normalizer = MemberOf(json_, "normalizer");
    if (const std::string type = TypeOfPart(normalizer); type == "BertNormalizer") {
      options.clean = FlagOf(normalizer, "clean_text", true);
      options.split_han = FlagOf(normalizer, "handle_chinese_chars", true);
      options.lower = FlagOf(normalizer, "lowercase", true);
      options.strip_accents = FlagOf(normalizer, "strip_accents", options.lower);
    } else if (normalizer.is_null()) {
      options.clean = options.split_han = options.lower = options.strip_accents = false;
    } else {
      return UnsupportedPart("a normalizer", type);
    }
    const std::string before = TypeOfPart(MemberOf(json_, "pre_tokenizer"));
    if (before != "BertPreTokenizer") return UnsupportedPart("a pre_tokenizer", before);
    options.unknown = TextOf(model, "unk_token");
    options.inner = TextOf(model, "continuing_subword_prefix");
    if (const Json& longest = MemberOf(model, "max_input_chars_per_word"); IsId(longest)) {
      options.longest = longest.get<size_t>();
    }
    absl::StatusOr<std::unique_ptr<TextPieces>> pieces =
        WordPieces(std::move(options), vocabulary_);
    if (!pieces.ok()) return Wrong(pieces.status().message());
    to_.pieces_ = *std::move(pieces);
    return absl::OkStatus();
  }

  absl::Status ReadBpe(const Json& model) {
    ASSIGN_OR_RETURN(TextNormalizer normalizer,
                     TextNormalizer::Parse(MemberOf(json_, "normalizer")));
    const Json& before = MemberOf(json_, "pre_tokenizer");
    if (TypeOfPart(before) != "ByteLevel" || !FlagOf(before, "use_regex", true)) {
      return UnsupportedPart("a pre_tokenizer", TypeOfPart(before));
    }
    for (const char* const key : {"continuing_subword_prefix", "end_of_word_suffix"}) {
      if (!TextOf(model, key).empty())
        return UnsupportedPart("a model with " + std::string(key), "BPE");
    }
    if (MemberOf(model, "dropout").is_number() && MemberOf(model, "dropout") > 0) {
      return UnsupportedPart("a model with dropout", "BPE");
    }
    ByteBpeOptions options;
    options.blank_before = FlagOf(before, "add_prefix_space", true);
    options.whole_words = FlagOf(model, "ignore_merges", false);
    std::vector<std::pair<std::string, std::string>> merges;
    RETURN_IF_ERROR(ReadMerges(MemberOf(model, "merges"), merges));
    absl::StatusOr<std::unique_ptr<TextPieces>> pieces = ByteBpe(options, vocabulary_, merges);
    if (!pieces.ok()) return Wrong(pieces.status().message());
    to_.pieces_ = WithNormalizer(std::move(normalizer), *std::move(pieces));
    return absl::OkStatus();
  }

  // The pieces are a list: their ids are their places.
  absl::Status ReadUnigram(const Json& model) {
    ASSIGN_OR_RETURN(TextNormalizer normalizer,
                     TextNormalizer::Parse(MemberOf(json_, "normalizer")));
    UnigramOptions options;
    bool replaces = false;
    RETURN_IF_ERROR(ReadSplits(MemberOf(json_, "pre_tokenizer"), options, replaces));
    if (!replaces) return UnsupportedPart("a pre_tokenizer without Metaspace", "Unigram");
    const Json& unknown = MemberOf(model, "unk_id");
    if (!IsId(unknown)) return Wrong("model.unk_id is missing");
    options.unknown = unknown.get<int32_t>();
    options.byte_fallback = FlagOf(model, "byte_fallback", false);
    std::vector<std::pair<std::string, double>> list;
    for (const Json& piece : MemberOf(model, "vocab")) {
      if (!piece.is_array() || piece.size() != 2 || !piece[0].is_string() ||
          !piece[1].is_number()) {
        return Wrong(absl::StrCat("model.vocab[", list.size(), "] is no piece with a score"));
      }
      list.emplace_back(piece[0].get<std::string>(), piece[1].get<double>());
    }
    if (list.size() > static_cast<size_t>(kMostIds)) return Wrong("model.vocab is too large");
    to_.size_ = static_cast<int32_t>(list.size());
    absl::StatusOr<std::unique_ptr<TextPieces>> pieces = Unigram(std::move(options), list);
    if (!pieces.ok()) return Wrong(pieces.status().message());
    to_.pieces_ = WithNormalizer(std::move(normalizer), *std::move(pieces));
    return absl::OkStatus();
  }

  // replaces: whether Metaspace, which replaces blanks, was there; it has to be the last step.
  static absl::Status ReadSplits(const Json& json, UnigramOptions& options, bool& replaces) {
    const std::string type = TypeOfPart(json);
    if (type == "Sequence") {
      for (const Json& part : MemberOf(json, "pretokenizers")) {
        RETURN_IF_ERROR(ReadSplits(part, options, replaces));
      }
      return absl::OkStatus();
    }
    if (replaces) return UnsupportedPart("a pre_tokenizer behind Metaspace", type);
    if (type == "WhitespaceSplit") {
      options.drop_blanks = true;
    } else if (type == "Punctuation" && TextOf(json, "behavior") == "Isolated") {
      options.split_punctuation = true;
    } else if (type == "Metaspace") {
      replaces = true;
      options.blank = TextOf(json, "replacement");
      options.split_at_blanks = FlagOf(json, "split", true);
      // Old versions have a flag in place of the scheme.
      const bool before = FlagOf(json, "add_prefix_space", true);
      const std::string scheme = TextOf(json, "prepend_scheme");
      options.blank_before = scheme.empty() ? before : scheme == "always";
      if (scheme == "first") return UnsupportedPart("a prepend_scheme", scheme);
    } else {
      return UnsupportedPart("a pre_tokenizer", type);
    }
    return absl::OkStatus();
  }

  // A merge is "a b" in old versions and ["a", "b"] in new ones.
  static absl::Status ReadMerges(const Json& list,
                                 std::vector<std::pair<std::string, std::string>>& merges) {
    if (!list.is_array()) return Wrong("model.merges is missing");
    for (const Json& merge : list) {
      if (merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string()) {
        merges.emplace_back(merge[0].get<std::string>(), merge[1].get<std::string>());
        continue;
      }
      const std::vector<std::string> two =
          absl::StrSplit(merge.is_string() ? merge.get<std::string>() : "", ' ');
      if (two.size() != 2) {
        return Wrong(absl::StrCat("model.merges[", merges.size(), "] is not a pair"));
      }
      merges.emplace_back(two[0], two[1]);
    }
    return absl::OkStatus();
  }

  absl::Status ReadAddedTokens() {
    const Json& list = MemberOf(json_, "added_tokens");
    for (size_t i = 0; list.is_array() && i < list.size(); ++i) {
      AddedToken token;
      token.text = TextOf(list[i], "content");
      if (token.text.empty() || !IsId(MemberOf(list[i], "id"))) {
        return Wrong(absl::StrCat("added_tokens[", i, "] has no content or no id"));
      }
      token.id = list[i]["id"].get<int32_t>();
      token.single_word = FlagOf(list[i], "single_word", false);
      token.takes_blanks_before = FlagOf(list[i], "lstrip", false);
      token.takes_blanks_after = FlagOf(list[i], "rstrip", false);
      to_.size_ = std::max(to_.size_, token.id + 1);
      if (FlagOf(list[i], "normalized", false)) {
        token.text = to_.pieces_->Normalize(token.text);
        to_.normalized_.Add(std::move(token));
      } else {
        to_.raw_.Add(std::move(token));
      }
    }
    return absl::OkStatus();
  }

  // The tokens around a single text. The network answers from the first one.
  absl::Status ReadTemplate() {
    const Json& processor = MemberOf(json_, "post_processor");
    const std::string type = TypeOfPart(processor);
    if (type == "TemplateProcessing") {
      RETURN_IF_ERROR(ReadItems(processor));
    } else if (type == "BertProcessing" || type == "RobertaProcessing") {
      RETURN_IF_ERROR(PutToken(MemberOf(processor, "cls"), to_.before_));
      RETURN_IF_ERROR(PutToken(MemberOf(processor, "sep"), to_.after_));
    } else {
      return UnsupportedPart("a post_processor", type);
    }
    if (to_.before_.empty()) return Wrong("the post_processor puts no token before a text");
    for (const std::vector<int32_t>* const ids : {&to_.before_, &to_.after_}) {
      for (const int32_t id : *ids) to_.size_ = std::max(to_.size_, id + 1);
    }
    return absl::OkStatus();
  }

  // pair: ["[CLS]", 101].
  static absl::Status PutToken(const Json& pair, std::vector<int32_t>& ids) {
    if (!pair.is_array() || pair.size() != 2 || !IsId(pair[1])) {
      return Wrong("post_processor: cls and sep are not both there");
    }
    ids.push_back(pair[1].get<int32_t>());
    return absl::OkStatus();
  }

  absl::Status ReadItems(const Json& processor) {
    bool after = false;
    for (const Json& item : MemberOf(processor, "single")) {
      if (item.contains("Sequence")) {
        after = true;
        continue;
      }
      const std::string name = TextOf(MemberOf(item, "SpecialToken"), "id");
      const Json& ids =
          MemberOf(MemberOf(MemberOf(processor, "special_tokens"), name.c_str()), "ids");
      if (!ids.is_array()) {
        return Wrong(absl::StrCat("post_processor.special_tokens has no '", name, "'"));
      }
      for (const Json& id : ids) {
        if (!IsId(id)) return Wrong("post_processor: an id is not one");
        (after ? to_.after_ : to_.before_).push_back(id.get<int32_t>());
      }
    }
    return after ? absl::OkStatus() : Wrong("post_processor.single has no text in it");
  }

  const Json& json_;
  JsonTokenizer& to_;
  Vocabulary vocabulary_;
};

absl::StatusOr<std::unique_ptr<Tokenizer>> JsonTokenizer::Parse(absl::string_view text) {
  if (NestedDeeper(text, kDeepest)) return Wrong("is nested too deeply");
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  std::unique_ptr<JsonTokenizer> tokenizer(new JsonTokenizer(text));
  RETURN_IF_ERROR(JsonTokenizerReader(json, *tokenizer).Read());
  return std::unique_ptr<Tokenizer>(std::move(tokenizer));
}

void JsonTokenizer::Encode(absl::string_view text, std::vector<int32_t>& ids) const {
  ids.insert(ids.end(), before_.begin(), before_.end());
  const auto put = [&ids](int32_t id) { ids.push_back(id); };
  const auto cut = [&](absl::string_view part) { pieces_->Encode(part, ids); };
  raw_.Split(
      text,
      [&](absl::string_view part) {
        if (!pieces_->changes()) return normalized_.Split(part, cut, put);
        normalized_.Split(pieces_->Normalize(part), cut, put);
      },
      put);
  ids.insert(ids.end(), after_.begin(), after_.end());
}

absl::StatusOr<std::string> TokenizerOfVocabulary(absl::string_view vocabulary,
                                                  absl::string_view settings) {
  const Json given = Json::parse(settings, nullptr, /*allow_exceptions=*/false);
  Json pieces = Json::object();
  int32_t id = 0;
  for (absl::string_view line : absl::StrSplit(vocabulary, '\n')) {
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    if (!line.empty()) pieces[std::string(line)] = id;
    ++id;
  }
  Json added = Json::array(), special = Json::object();
  for (const char* const token : {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"}) {
    if (!pieces.contains(token)) {
      return absl::InvalidArgumentError(absl::StrCat("the vocabulary has no piece ", token));
    }
    added.push_back({{"id", pieces[token]}, {"content", token}, {"normalized", false}});
    special[token] = {{"ids", {pieces[token]}}};
  }
  const bool lower = FlagOf(given, "do_lower_case", true);
  const Json json = {{"added_tokens", added},
                     {"normalizer",
                      {{"type", "BertNormalizer"},
                       {"clean_text", true},
                       {"handle_chinese_chars", FlagOf(given, "tokenize_chinese_chars", true)},
                       {"strip_accents", FlagOf(given, "strip_accents", lower)},
                       {"lowercase", lower}}},
                     {"pre_tokenizer", {{"type", "BertPreTokenizer"}}},
                     {"post_processor",
                      {{"type", "TemplateProcessing"},
                       {"single",
                        {{{"SpecialToken", {{"id", "[CLS]"}}}},
                         {{"Sequence", {{"id", "A"}}}},
                         {{"SpecialToken", {{"id", "[SEP]"}}}}}},
                       {"special_tokens", special}}},
                     {"model",
                      {{"type", "WordPiece"},
                       {"unk_token", "[UNK]"},
                       {"continuing_subword_prefix", "##"},
                       {"max_input_chars_per_word", 100},
                       {"vocab", pieces}}}};
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace traind
