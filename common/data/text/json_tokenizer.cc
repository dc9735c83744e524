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

namespace traind {

using Json = nlohmann::json;

namespace {

constexpr int kDeepest = 64;
constexpr int32_t kMostIds = 4'000'000;

absl::Status Wrong(absl::string_view what) { return absl::InvalidArgumentError(what); }

absl::Status Unsupported(absl::string_view part, absl::string_view type) {
  return Wrong(absl::StrCat(part, " of type '", type,
                            "' is not supported; those of BERT and DistilBERT (WordPiece) and of "
                            "RoBERTa (byte-level BPE) are"));
}

std::string TypeOf(const Json& part) {
  if (!part.is_object()) return part.is_null() ? "" : "none";
  const auto type = part.find("type");
  return type != part.end() && type->is_string() ? type->get<std::string>() : "";
}

// Returns the member, or null if the object lacks it.
const Json& Member(const Json& object, const char* key) {
  static const Json kNull;
  if (!object.is_object()) return kNull;
  const auto found = object.find(key);
  return found == object.end() ? kNull : *found;
}

bool Flag(const Json& object, const char* key, bool missing) {
  const Json& value = Member(object, key);
  return value.is_boolean() ? value.get<bool>() : missing;
}

std::string Text(const Json& object, const char* key) {
  const Json& value = Member(object, key);
  return value.is_string() ? value.get<std::string>() : "";
}

bool IsId(const Json& value) { return value.is_number_integer() && value >= 0 && value < kMostIds; }

}  // namespace

// Reads the parts of a file into a tokenizer.
class JsonTokenizerReader {
 public:
  JsonTokenizerReader(const Json& json, JsonTokenizer& to) : json_(json), to_(to) {}

  absl::Status Read() {
    if (!json_.is_object()) return Wrong("is not a JSON object");
    const Json& model = Member(json_, "model");
    std::string type = TypeOf(model);
    if (type.empty() && Member(model, "merges").is_array()) type = "BPE";  // of old versions
    if (type.empty() && model.contains("max_input_chars_per_word")) type = "WordPiece";
    if (type != "WordPiece" && type != "BPE") return Unsupported("a model", type);
    RETURN_IF_ERROR(ReadVocabulary(model));
    RETURN_IF_ERROR(type == "BPE" ? ReadBpe(model) : ReadWordPieces(model));
    RETURN_IF_ERROR(ReadAddedTokens());
    return ReadTemplate();
  }

 private:
  absl::Status ReadVocabulary(const Json& model) {
    const Json& vocabulary = Member(model, "vocab");
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
    const Json& normalizer = Member(json_, "normalizer");
    if (const std::string type = TypeOf(normalizer); type == "BertNormalizer") {
      options.clean = Flag(normalizer, "clean_text", true);
      options.split_han = Flag(normalizer, "handle_chinese_chars", true);
      options.lower = Flag(normalizer, "lowercase", true);
      options.strip_accents = Flag(normalizer, "strip_accents", options.lower);
    } else if (normalizer.is_null()) {
      options.clean = options.split_han = options.lower = options.strip_accents = false;
    } else {
      return Unsupported("a normalizer", type);
    }
    const std::string before = TypeOf(Member(json_, "pre_tokenizer"));
    if (before != "BertPreTokenizer") return Unsupported("a pre_tokenizer", before);
    options.unknown = Text(model, "unk_token");
    options.inner = Text(model, "continuing_subword_prefix");
    if (const Json& longest = Member(model, "max_input_chars_per_word"); IsId(longest)) {
      options.longest = longest.get<size_t>();
    }
    absl::StatusOr<std::unique_ptr<TextPieces>> pieces =
        WordPieces(std::move(options), vocabulary_);
    if (!pieces.ok()) return Wrong(pieces.status().message());
    to_.pieces_ = *std::move(pieces);
    return absl::OkStatus();
  }

  absl::Status ReadBpe(const Json& model) {
    if (const Json& normalizer = Member(json_, "normalizer"); !normalizer.is_null()) {
      return Unsupported("a normalizer", TypeOf(normalizer));
    }
    const Json& before = Member(json_, "pre_tokenizer");
    if (TypeOf(before) != "ByteLevel" || !Flag(before, "use_regex", true)) {
      return Unsupported("a pre_tokenizer", TypeOf(before));
    }
    for (const char* const key : {"continuing_subword_prefix", "end_of_word_suffix"}) {
      if (!Text(model, key).empty()) return Unsupported("a model with " + std::string(key), "BPE");
    }
    if (Member(model, "dropout").is_number() && Member(model, "dropout") > 0) {
      return Unsupported("a model with dropout", "BPE");
    }
    ByteBpeOptions options;
    options.blank_before = Flag(before, "add_prefix_space", true);
    options.whole_words = Flag(model, "ignore_merges", false);
    std::vector<std::pair<std::string, std::string>> merges;
    RETURN_IF_ERROR(ReadMerges(Member(model, "merges"), merges));
    absl::StatusOr<std::unique_ptr<TextPieces>> pieces = ByteBpe(options, vocabulary_, merges);
    if (!pieces.ok()) return Wrong(pieces.status().message());
    to_.pieces_ = *std::move(pieces);
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
    const Json& list = Member(json_, "added_tokens");
    for (size_t i = 0; list.is_array() && i < list.size(); ++i) {
      AddedToken token;
      token.text = Text(list[i], "content");
      if (token.text.empty() || !IsId(Member(list[i], "id"))) {
        return Wrong(absl::StrCat("added_tokens[", i, "] has no content or no id"));
      }
      token.id = list[i]["id"].get<int32_t>();
      token.single_word = Flag(list[i], "single_word", false);
      token.takes_blanks_before = Flag(list[i], "lstrip", false);
      token.takes_blanks_after = Flag(list[i], "rstrip", false);
      to_.size_ = std::max(to_.size_, token.id + 1);
      if (Flag(list[i], "normalized", false)) {
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
    const Json& processor = Member(json_, "post_processor");
    const std::string type = TypeOf(processor);
    if (type == "TemplateProcessing") {
      RETURN_IF_ERROR(ReadItems(processor));
    } else if (type == "BertProcessing" || type == "RobertaProcessing") {
      RETURN_IF_ERROR(PutToken(Member(processor, "cls"), to_.before_));
      RETURN_IF_ERROR(PutToken(Member(processor, "sep"), to_.after_));
    } else {
      return Unsupported("a post_processor", type);
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
    for (const Json& item : Member(processor, "single")) {
      if (item.contains("Sequence")) {
        after = true;
        continue;
      }
      const std::string name = Text(Member(item, "SpecialToken"), "id");
      const Json& ids = Member(Member(Member(processor, "special_tokens"), name.c_str()), "ids");
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
  const bool lower = Flag(given, "do_lower_case", true);
  const Json json = {{"added_tokens", added},
                     {"normalizer",
                      {{"type", "BertNormalizer"},
                       {"clean_text", true},
                       {"handle_chinese_chars", Flag(given, "tokenize_chinese_chars", true)},
                       {"strip_accents", Flag(given, "strip_accents", lower)},
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
