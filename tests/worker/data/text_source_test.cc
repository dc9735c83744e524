#include "worker/data/text_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "common/data/table/table_reader.h"
#include "common/data/table/table_writer.h"

namespace traind {
namespace {

using ::testing::ElementsAre;

std::shared_ptr<const Table> TableOf(const std::string& train, const std::string& test = "") {
  TableSource source;
  source.train = {"train.csv", train};
  if (!test.empty()) source.test = {"test.csv", test};
  source.target = "y";
  source.text_columns = {"title", "body"};
  auto rows = ReadTable(source);
  EXPECT_TRUE(rows.ok()) << rows.status().ToString();
  const std::string path = ::testing::TempDir() + "/text_source_test.table";
  EXPECT_TRUE(WriteTable(*rows, path).ok());
  auto table = Table::Open(path);
  EXPECT_TRUE(table.ok()) << table.status().ToString();
  return *table;
}

plain::TextSpec Spec() {
  plain::TextSpec spec;
  spec.columns = {"title", "body"};
  return spec;
}

constexpr char kTrain[] =
    "y,title,body\n"
    "a,Good,a good day\n"
    "b,Bad,\"a bad, long day\"\n"
    "a,,\n"
    "b,marker,marker marker marker\n";

std::vector<int32_t> IdsOf(const Tokenizer& tokenizer, const std::string& text) {
  std::vector<int32_t> ids;
  tokenizer.Encode(text, ids);
  return ids;
}

TEST(TextSourceTest, AVocabularyIsOfTheFoldsTrainingRowsAlone) {
  const auto table = TableOf(kTrain);
  const std::vector<int32_t> others{0, 1, 2}, all{0, 1, 2, 3};
  const auto fold = LearnTokenizer(*table, Spec(), others);
  // good, bad, a and day occur twice each; the other words once.
  EXPECT_EQ(fold->size(), 5);
  EXPECT_THAT(IdsOf(*fold, "marker"), ElementsAre(0));
  const auto leaking = LearnTokenizer(*table, Spec(), all);
  EXPECT_NE(IdsOf(*leaking, "marker")[0], 0);
}

TEST(TextSourceTest, ARowIsItsColumnsTokensAndAnEmptyOneATokenOfItsOwn) {
  const auto table = TableOf(kTrain, "title,body\nbad,\n,\n");
  const auto tokenizer = LearnTokenizer(*table, Spec(), std::vector<int32_t>{0, 1, 2});
  const int32_t empty = tokenizer->size();
  EXPECT_EQ(VocabularyOf(*tokenizer), empty + 1);
  const auto source = TextSource::OfTable(*table, Split::kTrain, *tokenizer, 256);
  MediaBatch batch;
  batch.tokens = {9, 9, 9};
  const std::vector<int32_t> rows{2, 0, 1};
  MediaRequest request;
  request.rows = rows;
  ASSERT_TRUE(source->Load(request, batch).ok());
  EXPECT_THAT(batch.ends, ElementsAre(1, 5, 11));
  const std::vector<int32_t> first = IdsOf(*tokenizer, "good a good day");
  EXPECT_EQ(batch.tokens[0], empty);
  EXPECT_EQ(std::vector<int32_t>(batch.tokens.begin() + 1, batch.tokens.begin() + 5), first);
  EXPECT_TRUE(batch.values.empty());

  const auto test = TextSource::OfTable(*table, Split::kTest, *tokenizer, 256);
  const std::vector<int32_t> both{0, 1};
  request.rows = both;
  ASSERT_TRUE(test->Load(request, batch).ok());
  EXPECT_THAT(batch.tokens, ElementsAre(IdsOf(*tokenizer, "bad")[0], empty));
}

TEST(TextSourceTest, OfAMillionWordsBothEndsAreSeen) {
  const auto table = TableOf(kTrain);
  const auto tokenizer = LearnTokenizer(*table, Spec(), std::vector<int32_t>{0, 1, 2});
  std::string text = "good";
  for (int i = 0; i < 1'000'000; ++i) text += " other";
  text += " bad";
  TextSource source(*tokenizer, 4);
  source.Add(text);
  MediaBatch batch;
  const std::vector<int32_t> row{0};
  MediaRequest request;
  request.rows = row;
  ASSERT_TRUE(source.Load(request, batch).ok());
  EXPECT_THAT(batch.tokens,
              ElementsAre(IdsOf(*tokenizer, "good")[0], 0, 0, IdsOf(*tokenizer, "bad")[0]));
  const std::vector<int32_t> beyond{1};
  request.rows = beyond;
  EXPECT_EQ(source.Load(request, batch).code(), absl::StatusCode::kOutOfRange);
}

}  // namespace
}  // namespace traind
