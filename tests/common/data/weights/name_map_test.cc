#include "common/data/weights/name_map.h"

#include <absl/strings/str_cat.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

namespace traind {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using Entries = std::map<std::string, std::string>;

NameMap Parsed(const Entries& entries) {
  auto map = NameMap::Parse(entries);
  EXPECT_TRUE(map.ok()) << map.status();
  return map.ok() ? *map : NameMap();
}

// Returns "a[1:2]^T b", "skip", "" if no entry matches, or the error.
std::string Found(const NameMap& map, const std::string& parameter) {
  const auto match = map.Find(parameter);
  if (!match.ok()) return std::string(match.status().message());
  if (!match->has_value()) return "";
  std::string text = (*match)->skip ? "skip" : "";
  for (const MapSource& source : (*match)->sources) {
    absl::StrAppend(&text, text.empty() ? "" : " ", source.tensor);
    if (source.first_row > 0 || source.end_row) {
      absl::StrAppend(&text, "[", source.first_row, ":",
                      source.end_row ? absl::StrCat(*source.end_row) : "", "]");
    }
    if (source.transposed) absl::StrAppend(&text, "^T");
  }
  return text;
}

std::string Refusal(const std::string& parameter, const std::string& tensors) {
  return std::string(NameMap::Parse({{parameter, tensors}}).status().message());
}

TEST(NameMapTest, NamesStandForTensors) {
  const NameMap map = Parsed({{"a", "x"}, {"b.weight", " q, k ,v "}, {"c", "skip"}});
  EXPECT_EQ(Found(map, "a"), "x");
  EXPECT_EQ(Found(map, "b.weight"), "q k v");
  EXPECT_EQ(Found(map, "c"), "skip");
  EXPECT_EQ(Found(map, "aa"), "");
}

TEST(NameMapTest, RowsAndTranspositionAreTakenOff) {
  const NameMap map = Parsed({{"a", "x[2:10], x[:3], x[3:], y^T, z[1:2]^T"}});
  EXPECT_EQ(Found(map, "a"), "x[2:10] x[0:3] x[3:] y^T z[1:2]^T");
}

TEST(NameMapTest, NumbersAreTheSameOnBothSides) {
  const NameMap map = Parsed({{"layers.{i}.in_{j}.w", "t.{j}.l.{i}.q, t.{j}.l.{i}.k"}});
  EXPECT_EQ(Found(map, "layers.12.in_0.w"), "t.0.l.12.q t.0.l.12.k");
  EXPECT_EQ(Found(map, "layers.a.in_0.w"), "");
  EXPECT_EQ(Found(map, "layers..in_0.w"), "");
  EXPECT_EQ(Found(map, "layers.1.in_0.wx"), "");
}

TEST(NameMapTest, AnAsteriskIsAnyText) {
  const NameMap map = Parsed({{"encoder.*", "bert.encoder.*"}});
  EXPECT_EQ(Found(map, "encoder.layers.0.w"), "bert.encoder.layers.0.w");
  EXPECT_EQ(Found(map, "encoder."), "");
  EXPECT_EQ(Found(map, "head.w"), "");
}

TEST(NameMapTest, TheNarrowerEntryCounts) {
  const NameMap map = Parsed({{"*", "all.*"}, {"l.{i}.w", "numbered.{i}"}, {"l.3.w", "third"}});
  EXPECT_EQ(Found(map, "l.3.w"), "third");
  EXPECT_EQ(Found(map, "l.4.w"), "numbered.4");
  EXPECT_EQ(Found(map, "l.x.w"), "all.l.x.w");
}

TEST(NameMapTest, TwoEntriesAlikeAreAMistake) {
  const NameMap map = Parsed({{"l.{i}.w", "a"}, {"l.{j}.w", "b"}});
  EXPECT_THAT(Found(map, "l.1.w"), HasSubstr("both 'l.{i}.w' and 'l.{j}.w'"));
}

TEST(NameMapTest, EntriesThatMatchNothingAreTold) {
  const NameMap map = Parsed({{"a", "x"}, {"b.{i}", "y"}, {"c.*", "z.*"}});
  EXPECT_THAT(map.Unmatched({"a", "b.0", "c.d"}), IsEmpty());
  EXPECT_THAT(map.Unmatched({"aa", "b.x"}), ElementsAre("a", "b.{i}", "c.*"));
}

TEST(NameMapTest, MistakesAreNamed) {
  EXPECT_THAT(Refusal("", "x"), HasSubstr("without a parameter"));
  EXPECT_THAT(Refusal("a", ""), HasSubstr("'a': a tensor without a name"));
  EXPECT_THAT(Refusal("a", "x,,y"), HasSubstr("without a name"));
  EXPECT_THAT(Refusal("a", "[1:2]"), HasSubstr("without a name"));
  EXPECT_THAT(Refusal("a.{i", "x"), HasSubstr("braces hold one word"));
  EXPECT_THAT(Refusal("a.{}", "x"), HasSubstr("braces hold one word"));
  EXPECT_THAT(Refusal("a.}", "x"), HasSubstr("braces hold one word"));
  EXPECT_THAT(Refusal("a.{i.j}", "x"), HasSubstr("braces hold one word"));
  EXPECT_THAT(Refusal("a.{i}.{i}", "x"), HasSubstr("'i' is there twice"));
  EXPECT_THAT(Refusal("a.{i}", "x.{j}"), HasSubstr("'j' in 'x.{j}' does not occur"));
  EXPECT_THAT(Refusal("a", "x.*"), HasSubstr("'*' in 'x.*' does not occur"));
  for (const char* rows : {"x[1]", "x[2:2]", "x[3:2]", "x[-1:2]", "x[a:b]", "x[1:2:3]"}) {
    EXPECT_THAT(Refusal("a", rows), HasSubstr("is not a range of rows")) << rows;
  }
  EXPECT_THAT(Refusal("a", "x]"), HasSubstr("']' without '['"));
}

}  // namespace
}  // namespace traind
