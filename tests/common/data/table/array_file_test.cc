#include "common/data/table/array_file.h"

#include <absl/strings/str_cat.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "common/base/durable_file.h"
#include "common/data/table/npy.h"
#include "common/data/table/table_reader.h"

namespace traind {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsNan;

// Returns an array that numpy wrote (golden_arrays.py).
std::string Golden(const std::string& name) {
  const auto bytes = ReadFile("tests/common/data/table/corpus/arrays/" + name);
  EXPECT_TRUE(bytes.ok()) << bytes.status();
  return *bytes;
}

std::vector<std::string> Row(const ArrayFile& file, int64_t row) {
  CsvRows rows;
  file.Append(row, row + 1, rows);
  return std::vector<std::string>(rows.fields(), rows.fields() + file.columns().size());
}

std::string Refusal(const std::string& bytes) {
  const auto file = ArrayFile::Open(bytes, "x.npz");
  EXPECT_EQ(file.status().code(), absl::StatusCode::kInvalidArgument) << file.status();
  return std::string(file.status().message());
}

TEST(ArrayFileTest, NumbersOfEveryDtypeAreReadWithAllTheirDigits) {
  for (const char* name : {"c_f4.npy", "c_f8.npy", "fortran.npy"}) {
    const std::string bytes = Golden(name);
    const auto file = ArrayFile::Open(bytes, name);
    ASSERT_TRUE(file.ok()) << file.status();
    EXPECT_THAT((*file)->columns(), ElementsAre("x0", "x1", "x2"));
    EXPECT_EQ((*file)->rows(), 3);
    EXPECT_THAT(Row(**file, 0), ElementsAre("1.5", "-2.25", ""));
    EXPECT_THAT(Row(**file, 1), ElementsAre("0.1", "3e+38", "-0"));
    EXPECT_THAT(Row(**file, 2), ElementsAre("1e-30", "7", "16777216"));
  }
  for (const char* name : {"c_i1.npy", "c_u2.npy", "c_i8.npy", "c_u8.npy"}) {
    const std::string bytes = Golden(name);
    const auto file = ArrayFile::Open(bytes, name);
    ASSERT_TRUE(file.ok()) << file.status();
    EXPECT_THAT(Row(**file, 2), ElementsAre("80", "100"));
  }
  const std::string bytes = Golden("bool.npy");
  const auto file = ArrayFile::Open(bytes, "bool.npy");
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_THAT((*file)->columns(), ElementsAre("x"));
  EXPECT_THAT(Row(**file, 0), ElementsAre("1"));
  EXPECT_THAT(Row(**file, 1), ElementsAre("0"));
}

TEST(ArrayFileTest, ArchivesBecomeTheTableThatTheirTextWouldBe) {
  for (const char* name : {"stored.npz", "deflated.npz"}) {
    const std::string bytes = Golden(name);
    TableSource source;
    source.train = {name, bytes};
    source.test = {"test.npz", bytes};
    source.target = "y";
    const auto rows = ReadTable(source);
    ASSERT_TRUE(rows.ok()) << rows.status();
    ASSERT_EQ(rows->schema.features.size(), 3u);
    EXPECT_EQ(rows->schema.train_rows, name[0] == 's' ? 3 : 150);
    EXPECT_EQ(rows->schema.test_rows, rows->schema.train_rows);
    EXPECT_EQ(rows->schema.classes.size(), 3u);
    EXPECT_TRUE(rows->schema.test_has_target);
    for (const ColumnRows* third : {&rows->train[2], &rows->test[2]}) {
      EXPECT_THAT(third->numbers[0], IsNan());
      EXPECT_EQ(third->numbers[2], 16777216.0f);
    }
  }
  const std::string bytes = Golden("c_f8.npy");
  TableSource source;
  source.train = {"x.npy", bytes};
  source.target = "x1";
  source.target_kind = TargetKind::kValue;
  const auto rows = ReadTable(source);
  ASSERT_TRUE(rows.ok()) << rows.status();
  EXPECT_THAT(rows->train_target.numbers, ElementsAre(-2.25f, 3e38f, 7));
}

TEST(ArrayFileTest, WhatIsNoTableOfNumbersIsRefusedByName) {
  EXPECT_THAT(Refusal(Golden("objects.npy")), HasSubstr("array 'x' holds Python objects"));
  EXPECT_THAT(Refusal(Golden("texts.npy")), HasSubstr("array 'x' holds texts"));
  EXPECT_THAT(Refusal(Golden("big_endian.npy")),
              HasSubstr("is big-endian (>f4); save it as '<f4'"));
  EXPECT_THAT(Refusal(Golden("half.npy")), HasSubstr("has dtype '<f2'"));
  EXPECT_THAT(Refusal(Golden("cube.npy")), HasSubstr("has shape (2, 2, 2)"));
  EXPECT_THAT(Refusal(Golden("lengths.npz")), HasSubstr("array 'y' has 4 rows, array 'x' has 3"));
  EXPECT_THAT(Refusal(EncodeNpy({0, 3}, absl::Span<const float>())), HasSubstr("have no rows"));
}

TEST(ArrayFileTest, ShapesThatOverflowOrNeedMoreThanThereIsAreRefused) {
  std::string bytes = EncodeNpy({2, 3}, std::vector<float>(6, 1.0f));
  const size_t at = bytes.find("(2, 3)");
  for (const char* shape : {"(9, 3)", "(2, 9)", "(1, 3)"}) {
    EXPECT_THAT(Refusal(std::string(bytes).replace(at, 6, shape)), HasSubstr("shape"));
  }
  std::string huge = bytes;
  const size_t blanks = huge.find("   ");
  huge.erase(blanks, 34);
  huge.replace(at, 6, "(4611686018427387904, 4611686018427387904)");
  huge.resize(bytes.size());
  EXPECT_THAT(Refusal(huge), HasSubstr("not a complete NPY file"));
}

TEST(ArrayFileTest, CutAndDamagedFilesAreRefusedAndHarmNothing) {
  for (const char* name : {"stored.npz", "deflated.npz", "c_f4.npy", "fortran.npy"}) {
    const std::string whole = Golden(name);
    for (size_t size = 6; size < whole.size(); ++size) {
      const auto cut = ArrayFile::Open(absl::string_view(whole).substr(0, size), name);
      EXPECT_FALSE(cut.ok()) << name << " cut to " << size;
    }
    int refused = 0;
    for (size_t at = 0; at < whole.size(); ++at) {
      std::string damaged = whole;
      damaged[at] = static_cast<char>(damaged[at] ^ 0xff);
      refused += ArrayFile::Open(damaged, name).ok() ? 0 : 1;
    }
    // In an archive, checksums detect a change of every byte of data.
    EXPECT_GT(refused, 40) << name;
  }
}

TEST(ArrayFileTest, MembersThatTellAnotherSizeAreRefused) {
  std::string bytes = Golden("deflated.npz");
  const size_t entry = bytes.find("PK\x01\x02");
  ASSERT_NE(entry, std::string::npos);
  for (const char size : {'\x00', '\xff'}) {
    std::string tricked = bytes;
    tricked[entry + 24] = size;
    EXPECT_THAT(Refusal(tricked), HasSubstr("does not decompress to the stated size"));
  }
  // A decompression bomb: terabytes from a few bytes.
  bytes[entry + 27] = '\x7f';
  EXPECT_THAT(Refusal(bytes), HasSubstr("cannot have the size that it states"));
}

}  // namespace
}  // namespace traind
