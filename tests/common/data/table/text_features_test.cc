// Numbers, lengths and words as features of columns of texts.
#include "common/data/table/text_features.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_split.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "common/data/table/csv.h"
#include "common/data/table/feature_reader.h"
#include "common/data/table/input_schema_json.h"
#include "common/data/table/table_reader.h"
#include "tests/common/data/table/table_fixture.h"

namespace traind {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::Pointwise;
using testing_table::OpenTable;
using testing_table::Read;

constexpr float kNone = std::numeric_limits<float>::quiet_NaN();

MATCHER(SameOrBothNan, "") {
  const auto& [a, b] = arg;
  return (std::isnan(a) && std::isnan(b)) || a == b;
}

std::vector<std::string> WordsOf(absl::string_view text) {
  std::vector<std::string> words;
  TextWords(text, [&](absl::string_view word) { words.emplace_back(word); });
  return words;
}

TEST(TextNumbersTest, NumbersStandAmongLetters) {
  struct Case {
    const char* text;
    std::vector<float> numbers;
  };
  for (const Case& c : std::vector<Case>{
           {"", {kNone, kNone, kNone}},
           {"none at all", {kNone, kNone, kNone}},
           {"998 CC", {998, kNone, kNone}},
           {"26.6 km/kg", {26.6f, kNone, kNone}},
           {"C85", {85, kNone, kNone}},
           {"B58 B60", {58, 60, kNone}},
           {"A/5 21171", {5, 21171, kNone}},
           {"10,000+", {10000, kNone, kNone}},
           {"1,234,567.5 each", {1234567.5f, kNone, kNone}},
           {"1,2,3", {1, 2, 3}},
           {"1,2345", {1, 2345, kNone}},
           {"4.0.3 and up", {4.0f, 3, kNone}},
           {"$4.99", {4.99f, kNone, kNone}},
           {"\xe2\x82\xac"
            "100",
            {100, kNone, kNone}},
           {"-5 to 7", {-5, 7, kNone}},
           {"1987-88", {1987, 88, kNone}},
           {"1920x1080 px", {1920, 1080, kNone}},
           {"one.", {kNone, kNone, kNone}},
           {"7.", {7, kNone, kNone}},
           {".5", {5, kNone, kNone}},
       }) {
    EXPECT_THAT(TextNumbers(c.text), Pointwise(SameOrBothNan(), c.numbers)) << c.text;
  }
}

TEST(TextNumbersTest, UnitsMultiply) {
  struct Case {
    const char* text;
    float number;
  };
  for (const Case& c : {Case{"19M", 19e6f},
                        {"201k", 201e3f},
                        {"1.5K", 1500},
                        {"8GB RAM", 8e9f},
                        {"1 TB", 1e12f},
                        {"2.4 GHz", 2.4e9f},
                        {"800 MHz", 800e6f},
                        {"5.61 Lakh", 561e3f},
                        {"1.27 Cr", 12.7e6f},
                        {"$3 million", 3e6f},
                        {"2bn", 2e9f},
                        {"4 M Street", 4},
                        {"12 kg", 12},
                        {"5 mm", 5},
                        {"19.67 kmpl", 19.67f},
                        {"7 GB5", 7}}) {
    EXPECT_FLOAT_EQ(TextNumbers(c.text)[0], c.number) << c.text;
  }
}

TEST(TextNumbersTest, CodesHaveNone) {
  for (const char* code : {"3f2a9c", "A1B", "12ab34", "x9y", "1234567890123456"}) {
    EXPECT_TRUE(std::isnan(TextNumbers(code)[0])) << code;
  }
  EXPECT_EQ(TextNumbers("3f2a 17")[0], 17);
  EXPECT_THAT(WordsOf("3f2a A1B x9y"), IsEmpty());
}

TEST(TextWordsTest, WordsAreLowerCaseWithoutDigits) {
  EXPECT_THAT(WordsOf("Braund, Mr. Owen Harris"), ElementsAre("braund", "mr", "owen", "harris"));
  EXPECT_THAT(WordsOf("4GB iPhone5 998 C85"), ElementsAre("gb", "iphone", "c"));
  EXPECT_THAT(WordsOf("O'Neil \xc3\x89t\xc3\xa9"), ElementsAre("o'neil", "\xc3\xa9t\xc3\xa9"));
  EXPECT_THAT(WordsOf("... 12 - !"), IsEmpty());
  EXPECT_THAT(WordsOf(std::string(41, 'a')), IsEmpty());
}

std::vector<std::string> NamesOf(const std::vector<TextFeature>& parts) {
  std::vector<std::string> names;
  for (const TextFeature& part : parts) names.push_back(TextFeatureName(part));
  return names;
}

TEST(TextFeatureTest, NamesAreReadBack) {
  for (const char* name : {"number", "number2", "number3", "length", "word.mr"}) {
    TextFeature part;
    ASSERT_TRUE(ParseTextFeature(name, part)) << name;
    EXPECT_EQ(TextFeatureName(part), name);
  }
  for (const char* name : {"", "number1", "number4", "numbers", "word.", "size"}) {
    TextFeature part;
    EXPECT_FALSE(ParseTextFeature(name, part)) << name;
  }
}

// `count` texts, each in one row.
std::vector<std::string> Texts(int count, const std::function<std::string(int)>& text) {
  std::vector<std::string> texts;
  for (int i = 0; i < count; ++i) texts.push_back(text(i));
  return texts;
}

std::vector<absl::string_view> ViewsOf(const std::vector<std::string>& texts) {
  return {texts.begin(), texts.end()};
}

TEST(PlainTextFeaturesTest, NumbersThatVaryAreParts) {
  const auto parts = [](const std::vector<std::string>& texts) {
    return NamesOf(PlainTextFeatures(ViewsOf(texts), std::vector<int64_t>(texts.size(), 1)));
  };
  EXPECT_THAT(parts(Texts(40, [](int i) { return absl::StrCat(100 + 20 * i, " CC"); })),
              ElementsAre("number"));
  EXPECT_THAT(parts(Texts(40, [](int i) { return absl::StrCat(20 * i, "x", i % 10); })),
              ElementsAre("number", "number2"));
  // Four numbers, too few; and a number in too few texts.
  EXPECT_THAT(parts(Texts(40, [](int i) { return absl::StrCat("v", i % 4, std::string(i, 'a')); })),
              ElementsAre("length"));
  EXPECT_THAT(parts(Texts(200,
                          [](int i) {
                            return i < 15 ? absl::StrCat("no. ", i) : std::string(i % 9 + 1, 'b');
                          })),
              ElementsAre("length"));
  // Few texts are categories, though their numbers have an order.
  EXPECT_THAT(parts(Texts(6, [](int i) { return absl::StrCat(1 << i, "GB"); })), IsEmpty());
}

TEST(PlainTextFeaturesTest, NumbersOfRowsAreNone) {
  const auto parts = [](const std::vector<std::string>& texts) {
    return NamesOf(PlainTextFeatures(ViewsOf(texts), std::vector<int64_t>(texts.size(), 1)));
  };
  EXPECT_THAT(parts(Texts(2000, [](int i) { return absl::StrCat("name", i); })), IsEmpty());
  EXPECT_THAT(
      parts(Texts(2000, [](int i) { return absl::StrCat("IMG_", 10'000 + 3 * i, ".png"); })),
      IsEmpty());
  EXPECT_THAT(parts(Texts(40, [](int i) { return absl::StrCat("v", i % 20); })), IsEmpty());
  EXPECT_THAT(parts(Texts(40, [](int i) { return absl::StrCat(i % 20, " v"); })),
              ElementsAre("number"));
  // Amounts differ in each row, too, but are not dense, or not whole.
  EXPECT_THAT(parts(Texts(2000, [](int i) { return absl::StrCat(i * 97, " USD"); })),
              ElementsAre("number"));
  EXPECT_THAT(parts(Texts(2000, [](int i) { return absl::StrCat(i, ".5 kg"); })),
              ElementsAre("number"));
}

TEST(PlainTextFeaturesTest, RowsCountNotTexts) {
  const std::vector<std::string> texts = {"1GB", "2GB", "4GB", "8GB", "16GB", "none"};
  EXPECT_THAT(NamesOf(PlainTextFeatures(ViewsOf(texts), {5, 5, 5, 5, 5, 100})),
              ElementsAre("number"));
  EXPECT_THAT(PlainTextFeatures(ViewsOf(texts), {1, 1, 1, 1, 1, 100}), IsEmpty());
  EXPECT_THAT(PlainTextFeatures(ViewsOf(texts), {5, 5, 5, 5, 0, 100}), IsEmpty());
}

TEST(FrequentWordsTest, WordsOfSeveralTextsComeByTheirRows) {
  const std::vector<std::string> texts = Texts(60, [](int i) {
    return absl::StrCat("w", std::string(static_cast<size_t>(i) + 1, 'x'),
                        i < 40 ? " Mr." : " Miss", i < 10 ? " San Francisco" : "",
                        i < 4 ? " rare" : "", " all");
  });
  const auto words = FrequentWords(ViewsOf(texts), std::vector<int64_t>(60, 2), 120);
  ASSERT_EQ(words.size(), 4);  // "rare" stands in 8 rows, "san" where "francisco" does
  EXPECT_EQ(words[0].word, "mr");
  EXPECT_EQ(words[0].rows, 80);
  EXPECT_EQ(words[1].word, "miss");
  EXPECT_EQ(words[2].word, "francisco");
  EXPECT_EQ(words[3].word, "rare");
  // With few rows each, "rare" is too rare; a word of one text is that text.
  EXPECT_EQ(FrequentWords(ViewsOf(texts), std::vector<int64_t>(60, 1), 60).size(), 3);
  EXPECT_THAT(FrequentWords({"a b", "a c"}, {50, 50}, 100), IsEmpty());  // few texts
}

TEST(FrequentWordsTest, MissingTextsCountAsRowsWithoutTheWord) {
  const std::vector<std::string> texts = Texts(40, [](int i) {
    return absl::StrCat("deck ", std::string(static_cast<size_t>(i) + 1, 'y'));
  });
  EXPECT_THAT(FrequentWords(ViewsOf(texts), std::vector<int64_t>(40, 1), 40), IsEmpty());
  EXPECT_EQ(FrequentWords(ViewsOf(texts), std::vector<int64_t>(40, 1), 100).size(), 1);
}

TEST(WordsToTakeTest, TheMostFrequentOfAllColumnsFit) {
  std::vector<FrequentWord> many(64), few(64);
  for (int i = 0; i < 64; ++i) {
    many[static_cast<size_t>(i)] = {absl::StrCat("m", i), 1000 - i};
    few[static_cast<size_t>(i)] = {absl::StrCat("f", i), 100 - i};
  }
  EXPECT_THAT(WordsToTake({few, many}, 5000), ElementsAre(32, 64));
  EXPECT_THAT(WordsToTake({few, many, many, many}, 5000), ElementsAre(0, 32, 32, 32));
  EXPECT_THAT(WordsToTake({few, many}, 1 << 20), ElementsAre(0, 32));  // 128 MiB of floats
}

TEST(TextFeatureReaderTest, ReadsAllParts) {
  std::vector<TextFeature> parts;
  for (const char* name : {"number", "length", "word.mr", "word.gb", "number2"}) {
    ASSERT_TRUE(ParseTextFeature(name, parts.emplace_back()));
  }
  const TextFeatureReader reader(parts);
  const auto read = [&](absl::string_view text) {
    std::vector<float> values(5, 99);
    reader.Read(text, values.data());
    return values;
  };
  EXPECT_THAT(read("Mr. \xc3\x89 4GB"), Pointwise(SameOrBothNan(), {4e9f, 8.f, 1.f, 1.f, kNone}));
  EXPECT_THAT(read(""), Pointwise(SameOrBothNan(), {kNone, 0.f, 0.f, 0.f, kNone}));
}

constexpr char kHeader[] = "name,engine,y\n";

// 120 rows: names that are all different, and engines of 40 sizes.
std::string Cars() {
  std::string text = kHeader;
  for (int i = 0; i < 120; ++i) {
    const char* maker = i % 3 == 0 ? "Ford" : i % 3 == 1 ? "Opel" : "Fiat";
    absl::StrAppend(&text, maker, " no", std::string(static_cast<size_t>(i) % 7, 'o'), "-",
                    std::string(1, static_cast<char>('a' + i % 26)),
                    std::string(1, static_cast<char>('a' + i / 26)), ",", 800 + 20 * (i % 40),
                    " CC,", i % 3 == 0 ? "a" : "b", "\n");
  }
  return text;
}

TEST(TextFeaturesTest, ATableHasThem) {
  const auto rows = Read(Cars(), std::string(kHeader) + "Ford nooo,850 CC,a\n,none,b\nSaab,,b\n");
  const auto table = OpenTable(rows);
  ASSERT_NE(table, nullptr);
  std::vector<std::string> names;
  for (const Column& column : table->schema().features) names.push_back(column.name);
  // The names themselves are not a feature; "cc" stands in all rows.
  EXPECT_THAT(names, Contains("name.length"));
  EXPECT_THAT(names, Contains("name.word.ford"));
  EXPECT_THAT(names, Contains("engine"));
  EXPECT_THAT(names, Contains("engine.number"));
  EXPECT_THAT(names, Not(Contains("name")));
  EXPECT_THAT(names, Not(Contains("engine.word.cc")));
  EXPECT_THAT(table->schema().warnings,
              Contains(HasSubstr("column 'engine' holds texts: its numbers, lengths")));
  EXPECT_THAT(table->schema().warnings,
              Contains(HasSubstr("column 'name' holds texts: its numbers")));
  const auto at = [&](const char* name) {
    return static_cast<int>(std::find(names.begin(), names.end(), name) - names.begin());
  };
  EXPECT_EQ(table->Numeric(at("engine.number"), Split::kTrain)[1], 820);
  EXPECT_EQ(table->Numeric(at("name.word.ford"), Split::kTrain)[3], 1);
  EXPECT_EQ(table->Numeric(at("name.word.ford"), Split::kTrain)[4], 0);
  EXPECT_THAT(table->Numeric(at("engine.number"), Split::kTest),
              Pointwise(SameOrBothNan(), {850.f, kNone, kNone}));
  EXPECT_THAT(table->Numeric(at("name.word.ford"), Split::kTest), ElementsAre(1, 0, 0));
  EXPECT_THAT(table->Numeric(at("name.length"), Split::kTest), ElementsAre(9, 0, 4));
}

TEST(TextFeaturesTest, ATableCanDoWithout) {
  TableSource source;
  const std::string text = Cars();
  source.train = {"train.csv", text};
  source.target = "y";
  source.text_features = false;
  const auto rows = ReadTable(source);
  ASSERT_TRUE(rows.ok()) << rows.status();
  ASSERT_EQ(rows->schema.features.size(), 1);
  EXPECT_EQ(rows->schema.features[0].name, "engine");
}

TEST(TextFeaturesTest, LaterRowsAreReadByTheModelsOwnDescription) {
  const auto rows = Read(Cars());
  ASSERT_TRUE(rows.ok()) << rows.status();
  const auto input = InputSchemaFromJson(InputSchemaJson(InputSchemaOf(rows->schema)));
  ASSERT_TRUE(input.ok()) << input.status();
  const auto reader = FeatureReader::Match(*input, {"engine", "name"}, "later.csv");
  ASSERT_TRUE(reader.ok()) << reader.status();
  // The training rows again, with their columns in another order.
  std::string turned;
  std::vector<size_t> ends;
  const std::string text = Cars();
  for (const absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    if (line == "name,engine,y") continue;
    const std::vector<absl::string_view> fields = absl::StrSplit(line, ',');
    for (const size_t field : {1, 0}) {
      absl::StrAppend(&turned, fields[field]);
      ends.push_back(turned.size());
    }
  }
  CsvRows again;
  again.Append(turned, ends, 2, 2);
  ASSERT_EQ(again.rows(), 120);
  std::vector<ColumnRows> cells;
  ASSERT_TRUE((*reader)->Read(again, 0, cells).ok());
  ASSERT_EQ(cells.size(), rows->train.size());
  for (size_t f = 0; f < cells.size(); ++f) {
    EXPECT_THAT(cells[f].numbers, Pointwise(SameOrBothNan(), rows->train[f].numbers));
    EXPECT_EQ(cells[f].codes, rows->train[f].codes);
  }
  nlohmann::json damaged = InputSchemaJson(*input);
  for (auto& feature : damaged["features"]) {
    if (feature.contains("text_feature")) feature["text_feature"] = "colour";
  }
  EXPECT_THAT(InputSchemaFromJson(damaged).status().message(), HasSubstr("no such part of a text"));
}

}  // namespace
}  // namespace traind
