#include "common/data/table/csv_chunks.h"

#include <absl/strings/str_cat.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/data/table/folds.h"

namespace traind {
namespace {

using ::testing::HasSubstr;

struct Row {
  std::vector<std::string> fields;
  int64_t line = 0;

  bool operator==(const Row& other) const { return fields == other.fields && line == other.line; }
};

struct Outcome {
  std::vector<Row> rows;
  absl::Status status;
};

const std::vector<std::string>& ThreeColumns() {
  static const auto& header = *new std::vector<std::string>{"a", "b", "c"};
  return header;
}

Outcome ReadAll(const std::string& text, int threads, size_t chunk_bytes) {
  Outcome outcome;
  CsvChunks chunks;
  chunks.bytes = text;
  chunks.name = "t.csv";
  chunks.threads = threads;
  chunks.chunk_bytes = chunk_bytes;
  std::vector<CsvRows> slots(static_cast<size_t>(chunks.slots()));
  chunks.parse = [&](int slot, CsvReader& reader, size_t stop) {
    CsvRows& rows = slots[static_cast<size_t>(slot)];
    rows.Clear();
    return reader.NextRows(ThreeColumns(), stop, text.size(), rows);
  };
  chunks.append = [&](int slot, const CsvPlace& base) {
    const CsvRows& rows = slots[static_cast<size_t>(slot)];
    for (size_t i = 0; i < rows.rows(); ++i) {
      Row row;
      for (size_t k = 0; k < 3; ++k) row.fields.emplace_back(rows.fields()[3 * i + k]);
      row.line = rows.lines()[i] + base.line - 1;
      outcome.rows.push_back(row);
    }
    return absl::OkStatus();
  };
  outcome.status = ReadCsvChunks(chunks);
  return outcome;
}

// Makes fields that may mislead a reader that starts in the middle.
std::string AwkwardCsv(uint64_t seed, int rows) {
  static constexpr const char* kFields[] = {"1.5",
                                            "",
                                            " word ",
                                            "\"a,b\"",
                                            "\"line\nend\"",
                                            "\"\n\n,x\n1,2,3\n\"",
                                            "\"say \"\"so\"\"\"",
                                            "5\" pipe"};
  static constexpr const char* kEnds[] = {"\n", "\r\n", "\n\n", "\n\r\n"};
  SeededRandom random(seed);
  std::string text;
  for (int row = 0; row < rows; ++row) {
    for (int column = 0; column < 3; ++column) {
      absl::StrAppend(&text, column == 0 ? "" : ",", kFields[random.Below(8)]);
    }
    absl::StrAppend(&text, kEnds[random.Below(4)]);
  }
  return text;
}

TEST(CsvChunksTest, RowsAndLinesAreTheSameForAnyNumberOfThreadsAndParts) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const std::string text = AwkwardCsv(seed, 60);
    const Outcome whole = ReadAll(text, 1, text.size() + 1);
    ASSERT_TRUE(whole.status.ok()) << whole.status;
    ASSERT_GT(whole.rows.size(), 50u);
    for (const size_t chunk_bytes : {1, 7, 64, 200}) {
      for (const int threads : {1, 2, 3}) {
        const Outcome parts = ReadAll(text, threads, chunk_bytes);
        ASSERT_TRUE(parts.status.ok()) << parts.status;
        EXPECT_TRUE(parts.rows == whole.rows)
            << "seed " << seed << ", " << threads << " threads, parts of " << chunk_bytes;
      }
    }
  }
}

TEST(CsvChunksTest, TheFirstMistakeIsToldWithItsPlaceInTheFile) {
  std::string text = AwkwardCsv(3, 40);
  text += "1,2\n";  // too short
  text += AwkwardCsv(4, 40);
  text += "\"never closed,1,2\n";
  const Outcome whole = ReadAll(text, 1, text.size() + 1);
  EXPECT_THAT(std::string(whole.status.message()), HasSubstr("column 3 ('c') is missing"));
  for (const size_t chunk_bytes : {1, 50, 300}) {
    for (const int threads : {1, 3}) {
      const Outcome parts = ReadAll(text, threads, chunk_bytes);
      EXPECT_EQ(parts.status.message(), whole.status.message());
      EXPECT_TRUE(parts.rows == whole.rows);
    }
  }
}

TEST(CsvChunksTest, AnEmptyRestHasNoRows) {
  EXPECT_TRUE(ReadAll("", 2, 10).status.ok());
  EXPECT_TRUE(ReadAll("\n\n\r\n\n", 2, 1).rows.empty());
}

}  // namespace
}  // namespace traind
