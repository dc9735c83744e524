// Our encoding by a SentencePiece model against SentencePiece's own.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "common/data/text/sentencepiece_tokenizer.h"
#include "tests/worker/prepare/sentencepiece_reference.h"
#include "worker/prepare/sentencepiece_training.h"

namespace traind {
namespace {

using ::testing::HasSubstr;

const char* const kWords[] = {"the",   "river",       "was",       "not",          "beautiful",
                              "at",    "all",         "we",        "found",        "nothing",
                              "there", "Stra\u00dfe", "caf\u00e9", "\u6771\u4eac", "rained",
                              "2024",  "it's",        "quiet",     "quietly",      "rivers"};

std::vector<std::string> Texts(int count) {
  std::mt19937 random(3);
  std::vector<std::string> texts;
  for (int i = 0; i < count; ++i) {
    std::string text;
    for (int k = 0; k < 12; ++k) {
      text += kWords[random() % std::size(kWords)];
      text += random() % 7 == 0 ? ", " : " ";
    }
    texts.push_back(text + ".");
  }
  return texts;
}

std::string Trained(const std::vector<std::string>& texts, int64_t vocabulary) {
  size_t at = 0;
  auto model = TrainSentencepiece(
      [&](std::string& text) {
        if (at == texts.size()) return false;
        text = texts[at++];
        return true;
      },
      vocabulary);
  EXPECT_TRUE(model.ok()) << model.status();
  return model.ok() ? *model : "";
}

TEST(SentencepieceTest, IdsAreThoseOfSentencePieceItself) {
  const std::string model = Trained(Texts(400), 120);
  const auto ours = ParseTokenizer(model);
  ASSERT_TRUE(ours.ok()) << ours.status();
  std::vector<std::string> texts = Texts(500);
  for (const char* text :
       {"", " ", "  two  blanks \t and\nlines ", "\uff34\uff48\uff45 \ufb01ne \u2460\u00bd",
        "\u00a0x\u3000y ", "\U0001f600\U0001f601 unknown \u0416\u0416\u0416",
        "caf\u0065\u0301 e\u0301", "\u200bzero\u00adwidth", "\u2581already", "ALL CAPS",
        "\uac00\uac01\u1100\u1161", "zzzzzzqqqq", "\u0130stanbul \u01c4"}) {
    texts.push_back(text);
  }
  for (const std::string& text : texts) {
    const std::vector<int> expected = ReferenceIds(model, text);
    std::vector<int32_t> found;
    (*ours)->Encode(text, found);
    EXPECT_EQ(found, std::vector<int32_t>(expected.begin(), expected.end())) << text;
  }
  EXPECT_EQ((*ours)->Serialize(), model);
}

TEST(SentencepieceTest, TheSameTextsGiveTheSameModel) {
  EXPECT_EQ(Trained(Texts(200), 100), Trained(Texts(200), 100));
}

TEST(SentencepieceTest, FewTextsGiveASmallerVocabulary) {
  EXPECT_FALSE(Trained({"a few words", "a few more words"}, 4000).empty());
  const auto none = TrainSentencepiece([](std::string&) { return false; }, 100);
  EXPECT_THAT(none.status().message(), HasSubstr("no pieces to learn"));
}

TEST(SentencepieceTest, FilesOfAnotherKindAreRefusedAndCutOnesDoNoHarm) {
  EXPECT_THAT(ParseTokenizer("not a model").status().message(),
              HasSubstr("not a SentencePiece model"));
  EXPECT_FALSE(ParseTokenizer(std::string(100, '\xff')).ok());
  const std::string model = Trained(Texts(100), 100);
  std::mt19937 random(5);
  for (int i = 0; i < 300; ++i) {
    std::string bytes = model.substr(0, random() % model.size());
    for (int k = 0; k < 4 && !bytes.empty(); ++k) {
      bytes[random() % bytes.size()] = static_cast<char>(random());
    }
    const auto damaged = ParseTokenizer(bytes);
    if (!damaged.ok()) continue;
    std::vector<int32_t> ids;
    (*damaged)->Encode("the \uff34 river was not \u6771\u4eac", ids);
    for (const int32_t id : ids) {
      EXPECT_GE(id, 0);
      EXPECT_LT(id, (*damaged)->size());
    }
  }
}

}  // namespace
}  // namespace traind
