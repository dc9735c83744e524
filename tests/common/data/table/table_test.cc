#include "common/data/table/table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <cstring>
#include <filesystem>
#include <string>

#include "common/base/durable_file.h"
#include "common/data/table/table_header.h"
#include "common/data/table/table_writer.h"
#include "tests/common/data/table/table_fixture.h"

namespace traind {
namespace {

using ::testing::ElementsAre;
using ::testing::IsNan;

class TableTest : public ::testing::Test {
 protected:
  TableTest() {
    std::string pattern = ::testing::TempDir() + "/table.XXXXXX";
    dir_ = mkdtemp(pattern.data());
    path_ = dir_ + "/t.table";
    auto rows = testing_table::Read("a,c,y\n1,u,no\n,v,yes\n3,,no\n",
                                    "id,a,c,y\nk,5,w,yes\nkk,6,u,\n", TargetKind::kClasses, "id");
    EXPECT_TRUE(rows.ok()) << rows.status();
    rows->schema.content_sha256 = "abc";
    EXPECT_TRUE(WriteTable(*rows, path_).ok());
    bytes_ = *ReadFile(path_);
  }
  ~TableTest() override { std::filesystem::remove_all(dir_); }

  absl::Status OpenBytes(const std::string& bytes) {
    EXPECT_TRUE(WriteFileDurably(dir_ + "/other", bytes).ok());
    return Table::Open(dir_ + "/other").status();
  }
  std::string Replaced(const std::string& from, const std::string& to) const {
    std::string bytes = bytes_;
    const size_t at = bytes.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    EXPECT_EQ(from.size(), to.size());
    return bytes.replace(at, from.size(), to);
  }

  std::string dir_, path_, bytes_;
};

TEST_F(TableTest, WrittenTableIsReadBack) {
  const auto table = Table::Open(path_);
  ASSERT_TRUE(table.ok()) << table.status();
  const TableSchema& schema = (*table)->schema();
  EXPECT_EQ(schema.train_rows, 3);
  EXPECT_EQ(schema.test_rows, 2);
  EXPECT_EQ(schema.target, "y");
  EXPECT_EQ(schema.id, "id");
  EXPECT_EQ(schema.content_sha256, "abc");
  EXPECT_TRUE(schema.test_has_target);
  EXPECT_THAT(schema.classes, ElementsAre("no", "yes"));
  EXPECT_THAT((*table)->Numeric(0, Split::kTrain), ElementsAre(1, IsNan(), 3));
  EXPECT_THAT((*table)->Numeric(0, Split::kTest), ElementsAre(5, 6));
  EXPECT_THAT((*table)->Codes(1, Split::kTrain), ElementsAre(0, 1, kMissingCode));
  EXPECT_THAT((*table)->Codes(1, Split::kTest), ElementsAre(kUnseenCode, 0));
  EXPECT_THAT((*table)->TargetClass(Split::kTrain), ElementsAre(0, 1, 0));
  EXPECT_THAT((*table)->TargetClass(Split::kTest), ElementsAre(1, kMissingCode));
  EXPECT_THAT((*table)->TestIds(), ElementsAre("k", "kk"));
  EXPECT_TRUE((*table)->VerifyDigest().ok());
  for (const Split split : {Split::kTrain, Split::kTest}) {
    EXPECT_EQ(reinterpret_cast<uintptr_t>((*table)->Numeric(0, split).data()) % 64, 0u);
  }
}

TEST_F(TableTest, RegressionTableWithoutTestRowsIsReadBack) {
  const auto rows = testing_table::Read("a,y\n1,0.5\n2,1.5\n", "", TargetKind::kValue);
  ASSERT_TRUE(WriteTable(*rows, path_).ok());
  const auto table = Table::Open(path_);
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_THAT((*table)->TargetValue(Split::kTrain), ElementsAre(0.5f, 1.5f));
  EXPECT_EQ((*table)->rows(Split::kTest), 0);
  EXPECT_TRUE((*table)->Numeric(0, Split::kTest).empty());
  EXPECT_TRUE((*table)->TestIds().empty());
}

TEST_F(TableTest, MissingFileIsNotFound) {
  EXPECT_EQ(Table::Open(dir_ + "/none").status().code(), absl::StatusCode::kNotFound);
}

TEST_F(TableTest, EveryCutIsDataLoss) {
  for (size_t size = 0; size < bytes_.size() - 63; size += 7) {
    ASSERT_EQ(OpenBytes(bytes_.substr(0, size)).code(), absl::StatusCode::kDataLoss) << size;
  }
}

TEST_F(TableTest, HeadersThatLieAreDataLoss) {
  EXPECT_EQ(OpenBytes(Replaced("TRTABLE1", "TRTABLE2")).code(), absl::StatusCode::kDataLoss);
  for (const auto& [from, to] : std::vector<std::pair<std::string, std::string>>{
           {"\"train_rows\":3", "\"train_rows\":4"},
           {"\"train_rows\":3", "\"train_rows\":-"},
           {"\"test_rows\":2", "\"test_rows\":9"},
           {"\"kind\":\"numeric\"", "\"kind\":\"numerix\""},
           {"\"f4\",12", "\"i4\",12"},
           {"\"i4\",12", "\"i4\",16"},
           {"\"classes\":[", "\"klasses\":["},
           {"\"test_has_target\":true", "\"test_has_target\":null"},
           {"\"u8\",16", "\"u8\",99"},
           {"\"categories\":[\"u\"", "\"categories\":[ 1 "},
       }) {
    EXPECT_EQ(OpenBytes(Replaced(from, to)).code(), absl::StatusCode::kDataLoss) << from;
  }
  std::string huge = bytes_;
  const uint64_t size = ~uint64_t{0};
  std::memcpy(&huge[8], &size, sizeof size);
  EXPECT_EQ(OpenBytes(huge).code(), absl::StatusCode::kDataLoss);
}

TEST_F(TableTest, CodesOutOfRangeAreDataLoss) {
  const auto header = ParseTableHeader(bytes_, bytes_.size(), "t");
  ASSERT_TRUE(header.ok()) << header.status();
  for (const auto& [place, code] :
       std::vector<std::pair<ArrayPlace, int32_t>>{{header->features[1][0], 2},
                                                   {header->features[1][0], -3},
                                                   {header->features[1][1], -3},
                                                   {header->target[0], kMissingCode},
                                                   {header->target[1], 2}}) {
    std::string bytes = bytes_;
    std::memcpy(&bytes[place.offset], &code, sizeof code);
    EXPECT_EQ(OpenBytes(bytes).code(), absl::StatusCode::kDataLoss) << code;
  }
  std::string bytes = bytes_;
  const uint64_t end = 1000;
  std::memcpy(&bytes[header->id_ends.offset], &end, sizeof end);
  EXPECT_EQ(OpenBytes(bytes).code(), absl::StatusCode::kDataLoss);
}

TEST_F(TableTest, AFlippedValueShowsInTheDigest) {
  const auto header = ParseTableHeader(bytes_, bytes_.size(), "t");
  std::string bytes = bytes_;
  bytes[header->features[0][0].offset] ^= 1;
  ASSERT_TRUE(WriteFileDurably(path_, bytes).ok());
  EXPECT_EQ((*Table::Open(path_))->VerifyDigest().code(), absl::StatusCode::kDataLoss);
}

TEST_F(TableTest, RowsThatDoNotFitTheSchemaAreNotWritten) {
  auto rows = testing_table::Read("a,y\n1,0\n2,1\n");
  rows->train[0].numbers.pop_back();
  EXPECT_EQ(WriteTable(*rows, dir_ + "/bad").code(), absl::StatusCode::kInvalidArgument);
  EXPECT_FALSE(std::filesystem::exists(dir_ + "/bad"));
}

}  // namespace
}  // namespace traind
