// Encoding by given SentencePiece models, of every kind that is read,
// against SentencePiece itself.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "common/data/text/tokenizer.h"
#include "tests/worker/prepare/sentencepiece_reference.h"

namespace traind {
namespace {

using ::testing::HasSubstr;
using Options = std::map<std::string, std::string>;

// The texts of the test: prose, code and names.
const char* const kProse[] = {
    "The river was not beautiful at all, and we found nothing there; it rained.",
    "Stra\u00dfe und Caf\u00e9, \u6771\u4eac \u306f\u96e8\u3060\u3063\u305f, "
    "\u041c\u043e\u0441\u043a\u0432\u0430 2024.",
    "It's quiet; quietly the rivers rose, and by 23:59 all of 1,024 houses were empty.",
    "def encode(self, text): return [self.pieces[c] for c in text if c != ' ']",
    "No more, no less: never more nor less than nothing, nowhere, nobody, nonetheless."};

// Words of the prose in another order, mixed with characters of many scripts.
std::vector<std::string> Texts(int count, unsigned seed, bool foreign) {
  std::mt19937 random(seed);
  std::vector<std::string> words;
  for (const std::string prose : kProse) {
    size_t begin = 0;
    while (begin < prose.size()) {
      const size_t end = std::min(prose.find(' ', begin), prose.size());
      words.push_back(prose.substr(begin, end - begin));
      begin = end + 1;
    }
  }
  const auto character = [&] {
    const uint32_t ranges[][2] = {{0x21, 0x7e},     {0xa0, 0x24f},    {0x370, 0x52f},
                                  {0x1100, 0x11ff}, {0x2000, 0x206f}, {0x3040, 0x30ff},
                                  {0x4e00, 0x4eff}, {0xff01, 0xff60}, {0x1f600, 0x1f64f}};
    const auto& range = ranges[random() % std::size(ranges)];
    const uint32_t c = range[0] + static_cast<uint32_t>(random() % (range[1] - range[0] + 1));
    std::string utf8;
    if (c < 0x80) {
      utf8 = {static_cast<char>(c)};
    } else if (c < 0x800) {
      utf8 = {static_cast<char>(0xc0 | c >> 6), static_cast<char>(0x80 | (c & 63))};
    } else if (c < 0x10000) {
      utf8 = {static_cast<char>(0xe0 | c >> 12), static_cast<char>(0x80 | (c >> 6 & 63)),
              static_cast<char>(0x80 | (c & 63))};
    } else {
      utf8 = {static_cast<char>(0xf0 | c >> 18), static_cast<char>(0x80 | (c >> 12 & 63)),
              static_cast<char>(0x80 | (c >> 6 & 63)), static_cast<char>(0x80 | (c & 63))};
    }
    return utf8;
  };
  std::vector<std::string> texts;
  for (int i = 0; i < count; ++i) {
    std::string text;
    for (size_t k = 0, most = 1 + random() % 30; k < most; ++k) {
      if (foreign && random() % 4 == 0) {
        for (size_t c = 0; c < 1 + random() % 6; ++c) text += character();
      } else {
        text += words[random() % words.size()];
      }
      if (random() % 5 > 0) text += random() % 9 == 0 ? "  \t" : " ";
    }
    texts.push_back(text);
  }
  return texts;
}

void ExpectSameIds(const Options& options) {
  const std::string model = ReferenceModel(Texts(600, 1, /*foreign=*/false), options);
  const auto ours = ParseTokenizer(model);
  ASSERT_TRUE(ours.ok()) << ours.status();
  std::vector<std::string> texts = Texts(3000, 2, /*foreign=*/true);
  for (const char* text :
       {"", " ", "   \t\n ", "a", "\u2581", "\u2581\u2581a", "<s>", "<unk> </s>", "<0x41>",
        "<0x0A>\n\n", "<mark> a<mark>b <mark><mark>", "<mar", "aaaaaaaaaaaaaaaaaaaaaaaaaaaa",
        "\U0001f600\U0001f601", "e\u0301\u0301", "@ @@ #hash"}) {
    texts.push_back(text);
  }
  const std::vector<std::vector<int>> expected = ReferenceIds(model, texts);
  for (size_t i = 0; i < texts.size(); ++i) {
    std::vector<int32_t> found;
    (*ours)->Encode(texts[i], found);
    ASSERT_EQ(found, std::vector<int32_t>(expected[i].begin(), expected[i].end())) << texts[i];
  }
}

class SentencepieceModelsTest : public testing::TestWithParam<const char*> {
 protected:
  Options Of(Options more) const {
    more["model_type"] = GetParam();
    more.emplace("vocab_size", "400");
    return more;
  }
};
INSTANTIATE_TEST_SUITE_P(Kinds, SentencepieceModelsTest, testing::Values("unigram", "bpe"),
                         [](const auto& info) { return std::string(info.param); });

TEST_P(SentencepieceModelsTest, PlainOnes) { ExpectSameIds(Of({})); }

TEST_P(SentencepieceModelsTest, BytesForUnknownCharacters) {
  ExpectSameIds(Of({{"byte_fallback", "true"}, {"vocab_size", "600"}}));
}

TEST_P(SentencepieceModelsTest, FewPiecesAndManyUnknownCharacters) {
  ExpectSameIds(Of({{"vocab_size", "60"}, {"character_coverage", "0.98"}}));
}

TEST_P(SentencepieceModelsTest, SymbolsOfTheUser) {
  ExpectSameIds(Of({{"user_defined_symbols", "<mark>,no,a b,<ma"}}));
  ExpectSameIds(
      Of({{"user_defined_symbols", "<mark>"}, {"byte_fallback", "true"}, {"vocab_size", "600"}}));
}

TEST_P(SentencepieceModelsTest, ControlSymbols) {
  ExpectSameIds(Of({{"control_symbols", "[CLS],#hash"}}));
}

TEST_P(SentencepieceModelsTest, BlanksOfEveryTreatment) {
  ExpectSameIds(Of({{"add_dummy_prefix", "false"}}));
  ExpectSameIds(Of({{"remove_extra_whitespaces", "false"}}));
  ExpectSameIds(Of({{"treat_whitespace_as_suffix", "true"}}));
  ExpectSameIds(Of({{"split_by_whitespace", "false"}}));
  ExpectSameIds(Of({{"normalization_rule_name", "identity"}}));
  ExpectSameIds(Of({{"normalization_rule_name", "nfkc_cf"}}));
}

TEST(SentencepieceKindsTest, OthersAreRefused) {
  for (const char* kind : {"char", "word"}) {
    const std::string model =
        ReferenceModel(Texts(50, 1, false), {{"model_type", kind}, {"vocab_size", "100"}});
    EXPECT_THAT(ParseTokenizer(model).status().message(), HasSubstr("neither unigram nor BPE"));
  }
}

TEST(SentencepieceKindsTest, ATextOfAMillionTokensIsEncodedLikeAShortOne) {
  for (const char* kind : {"unigram", "bpe"}) {
    const std::string model =
        ReferenceModel(Texts(300, 1, false), {{"model_type", kind}, {"vocab_size", "100"}});
    std::string text;
    while (text.size() < 2'000'000) text += kProse[text.size() % std::size(kProse)];
    std::vector<int32_t> found;
    (*ParseTokenizer(model))->Encode(text, found);
    EXPECT_GT(found.size(), 1'000'000u);
    const std::vector<int> expected = ReferenceIds(model, text);
    EXPECT_TRUE(std::equal(found.begin(), found.end(), expected.begin(), expected.end())) << kind;
  }
}

}  // namespace
}  // namespace traind
