#include "common/data/text/words.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "common/data/text/ngrams.h"
#include "common/data/text/word_tokenizer.h"

namespace traind {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

std::vector<std::string> WordsOf(absl::string_view text) {
  std::vector<std::string> words;
  ForEachWord(text, [&](absl::string_view word) { words.emplace_back(word); });
  return words;
}

std::vector<int32_t> IdsOf(const Tokenizer& tokenizer, absl::string_view text) {
  std::vector<int32_t> ids;
  tokenizer.Encode(text, ids);
  return ids;
}

TEST(WordsTest, AWordIsInLowerCaseAndAMarkStandsAlone) {
  EXPECT_THAT(WordsOf("It's NOT good,\tis it?"),
              ElementsAre("it's", "not", "good", ",", "is", "it", "?"));
  EXPECT_THAT(WordsOf("'quoted' dogs'"), ElementsAre("'", "quoted", "'", "dogs", "'"));
}

TEST(WordsTest, LettersBeyondAsciiAreLoweredToo) {
  EXPECT_THAT(WordsOf("\u00c4RGER \u041c\u0418\u0420 \u03a3\u03a9"),
              ElementsAre("\u00e4rger", "\u043c\u0438\u0440", "\u03c3\u03c9"));
}

TEST(WordsTest, WhatIsWrittenWithoutBlanksIsAWordPerCharacter) {
  EXPECT_THAT(WordsOf("\u65e5\u672c\u3001ok"), ElementsAre("\u65e5", "\u672c", "\u3001", "ok"));
}

TEST(WordsTest, BytesThatAreNoTextDoNoHarm) {
  EXPECT_THAT(WordsOf(""), IsEmpty());
  EXPECT_THAT(WordsOf(" \n\u00a0"), IsEmpty());
  EXPECT_THAT(WordsOf("a\xff\xe3\x81"), ElementsAre("a", "\xff", "\xe3", "\x81"));
}

TEST(WordTokenizerTest, TheMostFrequentWordsAreTheVocabulary) {
  WordCounter counter;
  counter.Add("b a b c");
  counter.Add("a b d d once");
  EXPECT_THAT(counter.MostFrequent(10), ElementsAre("b", "a", "d"));
  EXPECT_THAT(counter.MostFrequent(2), ElementsAre("b", "a"));
  const WordTokenizer tokenizer(counter.MostFrequent(2));
  EXPECT_EQ(tokenizer.size(), 3);
  EXPECT_THAT(IdsOf(tokenizer, "A new b"), ElementsAre(2, 0, 1));
  EXPECT_THAT(IdsOf(tokenizer, "  "), IsEmpty());
}

TEST(WordTokenizerTest, TheSameIsReadBack) {
  const WordTokenizer written({"good", "bad", "'"});
  const auto read = ParseTokenizer(written.Serialize());
  ASSERT_TRUE(read.ok()) << read.status().ToString();
  EXPECT_EQ((*read)->size(), 4);
  EXPECT_EQ(IdsOf(**read, "Bad 'good' new"), IdsOf(written, "Bad 'good' new"));
}

TEST(WordTokenizerTest, DamagedBytesAreRefused) {
  const std::string whole = WordTokenizer({"good", "bad"}).Serialize();
  EXPECT_EQ(ParseTokenizer(whole.substr(0, whole.size() - 1)).status().code(),
            absl::StatusCode::kDataLoss);
  EXPECT_EQ(ParseTokenizer(whole + "good\n").status().code(), absl::StatusCode::kDataLoss);
  EXPECT_FALSE(ParseTokenizer("").ok());
  EXPECT_FALSE(ParseTokenizer("traind words 2\nbad\n").ok());
}

TEST(TokenizerTest, OfALongTextBothEndsAreKept) {
  std::vector<int32_t> ids{9, 1, 2, 3, 4, 5};
  KeepBothEnds(1, 5, ids);
  EXPECT_THAT(ids, ElementsAre(9, 1, 2, 3, 4, 5));
  KeepBothEnds(1, 3, ids);
  EXPECT_THAT(ids, ElementsAre(9, 1, 2, 5));
  KeepBothEnds(1, 1, ids);
  EXPECT_THAT(ids, ElementsAre(9, 1));
}

std::map<uint32_t, int> Counts(const std::string& text, size_t most_bytes = 1000) {
  NgramCounts counts;
  counts.Add("something else", 1000);
  counts.Add(text, most_bytes);
  std::map<uint32_t, int> by_bucket;
  for (const NgramCount& item : counts[1]) by_bucket[item.bucket] += item.count;
  EXPECT_EQ(by_bucket.size(), counts[1].size()) << "a bucket stands once";
  return by_bucket;
}

TEST(NgramsTest, WordsAndPairsOfAdjacentWordsAreCounted) {
  const auto counts = Counts("good Good bad");  // good x 2, bad, "good good", "good bad"
  EXPECT_EQ(counts.size(), 4u);
  int most = 0;
  for (const auto& [bucket, count] : counts) most = std::max(most, count);
  EXPECT_EQ(most, 2);
  EXPECT_NE(Counts("not good"), Counts("good not"));
  EXPECT_TRUE(Counts(" ").empty());
}

TEST(NgramsTest, BucketsStayThoseOfEarlierVersions) {
  EXPECT_THAT(Counts("good"), ElementsAre(Pair(566516, 1)));
}

TEST(NgramsTest, OfALongTextBothEndsAreRead) {
  EXPECT_EQ(Counts("left middle of the text right", 10), [] {
    auto both = Counts("left");
    for (const auto& [bucket, count] : Counts("right")) both[bucket] += count;
    return both;
  }());
}

TEST(NgramsTest, CountsEndAt4095) {
  std::string text;
  for (int i = 0; i < 5000; ++i) text += "a ";
  for (const auto& [bucket, count] : Counts(text, 100000)) EXPECT_EQ(count, 4095) << bucket;
}

}  // namespace
}  // namespace traind
