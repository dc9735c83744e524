#include "common/data/text/json_tokenizer.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_replace.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "common/base/durable_file.h"
#include "common/data/text/characters.h"

namespace traind {
namespace {

using Json = nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kFolder[] = "tests/golden/texts/";

std::string File(const std::string& name) {
  const auto bytes = ReadFile(absl::StrCat(kFolder, name));
  EXPECT_TRUE(bytes.ok()) << bytes.status();
  return bytes.value_or("");
}

std::vector<int32_t> Ids(const Tokenizer& tokenizer, const std::string& text) {
  std::vector<int32_t> ids;
  tokenizer.Encode(text, ids);
  return ids;
}

// tests/golden/hub_texts_golden.py asked the library.
void ExpectIdsOfTheLibrary(const std::string& family, const std::string& json) {
  const auto tokenizer = ParseTokenizer(json);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  const Json texts = Json::parse(File("tokens.json"));
  ASSERT_GT(texts.size(), 250);
  int wrong = 0;
  for (const Json& line : texts) {
    const auto wanted = line[family].get<std::vector<int32_t>>();
    const auto found = Ids(**tokenizer, line["text"].get<std::string>());
    if (found == wanted) continue;
    EXPECT_EQ(found, wanted) << line["text"].dump(-1, ' ', true);
    ASSERT_LT(++wrong, 10);
  }
  const auto again = ParseTokenizer((*tokenizer)->Serialize());
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ((*again)->size(), (*tokenizer)->size());
  EXPECT_EQ(Ids(**again, "a room"), Ids(**tokenizer, "a room"));
}

TEST(JsonTokenizerTest, BertsPiecesAreThoseOfTheLibrary) {
  ExpectIdsOfTheLibrary("bert", File("bert/tokenizer.json"));
}

TEST(JsonTokenizerTest, RobertasBytePairsAreThoseOfTheLibrary) {
  ExpectIdsOfTheLibrary("roberta", File("roberta/tokenizer.json"));
}

TEST(JsonTokenizerTest, ModernbertsBytePairsAreThoseOfTheLibrary) {
  ExpectIdsOfTheLibrary("modernbert", File("modernbert/tokenizer.json"));
}

TEST(JsonTokenizerTest, UnigramPiecesAreThoseOfTheLibrary) {
  ExpectIdsOfTheLibrary("deberta_v3", File("deberta_v3/tokenizer.json"));
}

TEST(JsonTokenizerTest, UnknownCharactersOfAUnigramModelMayBecomeBytes) {
  ExpectIdsOfTheLibrary("unigram_bytes", File("tokenizers/unigram_bytes.json"));
}

TEST(JsonTokenizerTest, UnigramModelsMaySplitAtBlanksAndPunctuationFirst) {
  ExpectIdsOfTheLibrary("unigram_split", File("tokenizers/unigram_split.json"));
}

TEST(JsonTokenizerTest, AVocabularyAndItsSettingsMakeATokenizer) {
  const auto json =
      TokenizerOfVocabulary(File("distilbert/vocab.txt"), File("distilbert/tokenizer_config.json"));
  ASSERT_TRUE(json.ok()) << json.status();
  ExpectIdsOfTheLibrary("distilbert", *json);
  EXPECT_THAT(TokenizerOfVocabulary("a\nb\n", "{}").status().message(),
              HasSubstr("the vocabulary has no piece [PAD]"));
  const auto lower = TokenizerOfVocabulary("[PAD]\n[UNK]\n[CLS]\r\n[SEP]\n[MASK]\na\n##b\n", "{}");
  ASSERT_TRUE(lower.ok()) << lower.status();
  const auto tokenizer = ParseTokenizer(*lower);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  EXPECT_THAT(Ids(**tokenizer, "AB"), ElementsAre(2, 5, 6, 3));
}

std::string Error(const std::string& file, absl::string_view from, absl::string_view to) {
  const std::string json = absl::StrReplaceAll(File(file), {{from, to}});
  return std::string(ParseTokenizer(json).status().message());
}

TEST(JsonTokenizerTest, WhatIsNotSupportedIsNamed) {
  const std::string bert = "bert/tokenizer.json", roberta = "roberta/tokenizer.json";
  EXPECT_THAT(Error(bert, "\"WordPiece\"", "\"WordLevel\""),
              HasSubstr("a model of type 'WordLevel' is not supported; those of BERT"));
  EXPECT_THAT(Error(bert, "\"BertNormalizer\"", "\"NFC\""),
              HasSubstr("a normalizer of type 'NFC'"));
  EXPECT_THAT(Error(bert, "\"BertPreTokenizer\"", "\"Whitespace\""),
              HasSubstr("a pre_tokenizer of type 'Whitespace'"));
  EXPECT_THAT(Error(bert, "\"TemplateProcessing\"", "\"Other\""),
              HasSubstr("a post_processor of type 'Other'"));
  EXPECT_THAT(Error(bert, "\"unk_token\": \"[UNK]\"", "\"unk_token\": \"<u>\""),
              HasSubstr("no unknown piece <u>"));
  EXPECT_THAT(Error(roberta, "\"use_regex\": true", "\"use_regex\": false"),
              HasSubstr("a pre_tokenizer of type 'ByteLevel'"));
  EXPECT_THAT(Error(roberta, "\"dropout\": null", "\"dropout\": 0.1"),
              HasSubstr("a model with dropout"));
  EXPECT_THAT(Error(roberta, "\"merges\": [", "\"merges\": [\"no pair here\", "),
              HasSubstr("model.merges[0] is not a pair"));
  EXPECT_THAT(Error(roberta, "\"merges\": [", "\"merges\": [[\"qq\", \"zz\"], "),
              HasSubstr("merge 1, of 'qq' and 'zz', is not of the vocabulary"));
  const std::string deberta = "deberta_v3/tokenizer.json";
  EXPECT_THAT(Error(deberta, "\"Regex\": \" {2,}\"", "\"Regex\": \"a+\""),
              HasSubstr("the expression 'a+' of a Replace is not supported"));
  EXPECT_THAT(Error(deberta, "\"type\": \"Strip\"", "\"type\": \"Nmt\""),
              HasSubstr("a normalizer of type 'Nmt'"));
  EXPECT_THAT(Error(deberta, "\"precompiled_charsmap\": \"", "\"precompiled_charsmap\": \"!"),
              HasSubstr("precompiled_charsmap is damaged"));
  EXPECT_THAT(Error(deberta, "\"type\": \"Metaspace\"", "\"type\": \"Whitespace\""),
              HasSubstr("a pre_tokenizer of type 'Whitespace'"));
  EXPECT_THAT(Error(deberta, "\"prepend_scheme\": \"always\"", "\"prepend_scheme\": \"first\""),
              HasSubstr("a prepend_scheme of type 'first'"));
  EXPECT_THAT(Error(deberta, "\"unk_id\": 3", "\"unk_id\": null"),
              HasSubstr("model.unk_id is missing"));
  EXPECT_THAT(Error(deberta, "\"unk_id\": 3", "\"unk_id\": 99999"),
              HasSubstr("the vocabulary has no unknown piece"));
  EXPECT_THAT(ParseTokenizer("{").status().message(), HasSubstr("is not a JSON object"));
  EXPECT_THAT(ParseTokenizer("{}").status().message(), HasSubstr("a model of type ''"));
}

TEST(JsonTokenizerTest, DamagedTextsDoNoHarm) {
  for (const char* const file :
       {"bert/tokenizer.json", "roberta/tokenizer.json", "modernbert/tokenizer.json",
        "deberta_v3/tokenizer.json", "tokenizers/unigram_bytes.json"}) {
    const auto tokenizer = ParseTokenizer(File(file));
    ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
    for (const char* const text : {"\xff\xfe", "a\xc3", "\xe2\x82", "\xf0\x9f\x98",
                                   "\x80[MASK]\x80", "\xed\xa0\x80", "\xc0\x80"}) {
      for (const int32_t id : Ids(**tokenizer, text)) {
        EXPECT_GE(id, 0);
        EXPECT_LT(id, (*tokenizer)->size());
      }
    }
    const std::vector<int32_t> longest = Ids(**tokenizer, std::string(1 << 20, 'a'));
    EXPECT_GE(longest.size(), 3);
  }
}

TEST(CharactersTest, AreReadAndWrittenAsTheyAre) {
  for (const uint32_t c : {0x24u, 0xa2u, 0x20acu, 0x10348u, 0x10ffffu}) {
    std::string text;
    AppendCharacter(c, text);
    EXPECT_EQ(FirstCharacter(text).value, c);
    EXPECT_EQ(FirstCharacter(text).bytes, text.size());
  }
}

}  // namespace
}  // namespace traind
