#include "common/data/table/csv.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "common/data/table/other_formats.h"

namespace traind {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<std::vector<std::string>> AllRows(absl::string_view bytes) {
  CsvReader reader(bytes, "t.csv");
  std::vector<std::vector<std::string>> rows;
  while (true) {
    const auto next = reader.Next();
    EXPECT_TRUE(next.ok()) << next.status();
    if (!next.ok() || !*next) return rows;
    rows.emplace_back(reader.fields().begin(), reader.fields().end());
  }
}

std::string ErrorOf(absl::string_view bytes) {
  CsvReader reader(bytes, "t.csv");
  while (true) {
    const auto next = reader.Next();
    if (!next.ok()) return std::string(next.status().message());
    if (!*next) return "";
  }
}

TEST(CsvReaderTest, SplitsRowsWithAnyLineEndAndNoneAtTheEnd) {
  EXPECT_THAT(AllRows("a,b\n1,2\r\n3,4\r5,6"),
              ElementsAre(ElementsAre("a", "b"), ElementsAre("1", "2"), ElementsAre("3", "4"),
                          ElementsAre("5", "6")));
}

TEST(CsvReaderTest, KeepsEmptyFieldsAndSkipsBlankLines) {
  EXPECT_THAT(AllRows("a,,c\n\n,,\n"),
              ElementsAre(ElementsAre("a", "", "c"), ElementsAre("", "", "")));
  EXPECT_THAT(AllRows("a,b\n  \n 1,2\n \r\n   "),
              ElementsAre(ElementsAre("a", "b"), ElementsAre("1", "2")));
  const auto sample = CheckCsvSample("a,b\n  \n1,2\n 3\n", true, "t.csv");
  EXPECT_EQ(sample.status().message(),
            "t.csv: row 2 (line 4) has 1 field, the header has 2: column 2 ('b') is missing");
}

TEST(CsvReaderTest, StripsBlanksAroundUnquotedFieldsOnly) {
  EXPECT_THAT(AllRows(" a ,\" b \" ,\tc d\t\n"), ElementsAre(ElementsAre("a", " b ", "c d")));
}

TEST(CsvReaderTest, QuotedFieldsHoldCommasQuotesAndLineEnds) {
  EXPECT_THAT(
      AllRows("\"x,y\",\"say \"\"hi\"\"\",\"two\nlines\"\nnext,1,2\n"),
      ElementsAre(ElementsAre("x,y", "say \"hi\"", "two\nlines"), ElementsAre("next", "1", "2")));
}

TEST(CsvReaderTest, SkipsAByteOrderMark) {
  EXPECT_THAT(AllRows("\xef\xbb\xbfid,x\n"), ElementsAre(ElementsAre("id", "x")));
}

// As Excel writes it.
TEST(CsvReaderTest, AFirstLineMayTellTheDelimiter) {
  for (const std::string mark : {"", "\xef\xbb\xbf"}) {
    const std::string text = mark + "sep=|\r\na|b,c\r\n1|2\r\n";
    EXPECT_EQ(DelimiterOf(text, "t.csv"), '|');
    EXPECT_EQ(DelimiterOf(text, "t.tsv"), '|');
    EXPECT_THAT(*ReadCsvHeader(text, "t.csv"), ElementsAre("a", "b,c"));
    CsvReader reader(text, "t.csv", '|');
    ASSERT_TRUE(*reader.Next());
    EXPECT_EQ(reader.line(), 2);
    ASSERT_TRUE(*reader.Next());
    EXPECT_THAT(reader.fields(), ElementsAre("1", "2"));
  }
  // A column may have such a name.
  EXPECT_THAT(*ReadCsvHeader("sep=;x\n", "t.csv"), ElementsAre("sep=", "x"));
  EXPECT_THAT(*ReadCsvHeader("sep=\n\nx\n", "t.csv"), ElementsAre("sep="));
}

TEST(CsvReaderTest, CountsLinesThroughQuotedLineEnds) {
  CsvReader reader("h\n\"a\nb\"\nlast\n", "t.csv");
  ASSERT_TRUE(*reader.Next());
  ASSERT_TRUE(*reader.Next());
  ASSERT_TRUE(*reader.Next());
  EXPECT_EQ(reader.line(), 4);
  EXPECT_EQ(reader.rows(), 3);
}

TEST(CsvReaderTest, NamesThePlaceOfWhatIsNotCsv) {
  EXPECT_EQ(ErrorOf("a,b\n1,\"open\n"),
            "t.csv: row 1 (line 2), column 2: a quote that is never closed");
  EXPECT_THAT(ErrorOf("a,b\n\"1\"x,2\n"), HasSubstr("'x' after a closing quote"));
  EXPECT_THAT(ErrorOf(absl::string_view("a,b\n1,\0\n", 8)), HasSubstr("zero byte"));
  EXPECT_THAT(ErrorOf(absl::string_view("a,b\n1,\"\0\"\n", 10)), HasSubstr("zero byte"));
}

TEST(CsvHeaderTest, RefusesWhatIsNoHeader) {
  EXPECT_THAT(ReadCsvHeader("", "t.csv").status().message(), HasSubstr("t.csv: the file is empty"));
  EXPECT_THAT(ReadCsvHeader("\n\n", "t.csv").status().message(), HasSubstr("no header row"));
  EXPECT_THAT(*ReadCsvHeader("a,,c\n", "t.csv"), ElementsAre("a", "unnamed: 1", "c"));
  EXPECT_THAT(ReadCsvHeader("a,b,a\n", "t.csv").status().message(),
              HasSubstr("two columns are called 'a'"));
  EXPECT_THAT(ReadCsvHeader("\x1f\x8b\x08", "t.csv").status().message(), HasSubstr("gzip"));
  EXPECT_THAT(ReadCsvHeader("\xff\xfe"
                            "a",
                            "t.csv")
                  .status()
                  .message(),
              HasSubstr("UTF-16"));
}

TEST(CsvHeaderTest, ColumnsWithTheSameNameGetNumbersAsInPandas) {
  std::vector<std::string> repeated;
  EXPECT_THAT(*ReadCsvHeader("a,b,a,a,b\n", "t.csv", &repeated),
              ElementsAre("a", "b", "a.1", "a.2", "b.1"));
  EXPECT_THAT(repeated, ElementsAre("a", "b"));
  repeated.clear();
  EXPECT_THAT(*ReadCsvHeader("a,a,a.1\n", "t.csv", &repeated), ElementsAre("a", "a.2", "a.1"));
  EXPECT_THAT(repeated, ElementsAre("a"));
  repeated.clear();
  EXPECT_THAT(*ReadCsvHeader("a,b\n", "t.csv", &repeated), ElementsAre("a", "b"));
  EXPECT_THAT(repeated, IsEmpty());
}

TEST(OtherFormatsTest, ASpreadsheetIsToldFromAnArchiveOfArrays) {
  const auto zip = [](const std::string& member) {
    std::string bytes("PK\x03\x04", 4);
    bytes += std::string(22, 'x');
    bytes += static_cast<char>(member.size());
    return bytes + std::string(3, '\0') + member + "rest";
  };
  for (const std::string& bytes :
       {zip("[Content_Types].xml"), zip("xl/workbook.xml"), zip("_rels/.rels"), zip("mimetype"),
        std::string("\xd0\xcf\x11\xe0")}) {
    EXPECT_EQ(RefuseOtherFormats(bytes, "t").message(),
              "t: this is a spreadsheet; save it as CSV, in UTF-8");
  }
  EXPECT_TRUE(RefuseOtherFormats(zip("x.npy"), "t").ok());
  EXPECT_TRUE(RefuseOtherFormats("PK\x03\x04", "t").ok());
  EXPECT_TRUE(RefuseOtherFormats("a,b\n", "t").ok());
}

TEST(CsvSampleTest, NamesRowAndColumnOfARaggedRow) {
  EXPECT_EQ(CheckCsvSample("a,b,c\n1,2,3\n4,5\n", true, "t.csv").status().message(),
            "t.csv: row 2 (line 3) has 2 fields, the header has 3: column 3 ('c') is missing");
  EXPECT_THAT(CheckCsvSample("a,b\n1,2,3\n", true, "t.csv").status().message(),
              HasSubstr("row 1 (line 2) has 3 fields, the header has 2: column 3 is one too many"));
}

TEST(CsvSampleTest, DoesNotJudgeWhatTheEndOfAPartCuts) {
  const auto row = CheckCsvSample("a,b\n1,2\n3", false, "t.csv");
  ASSERT_TRUE(row.ok()) << row.status();
  EXPECT_EQ(row->rows, 1);
  const auto quote = CheckCsvSample("a,b\n1,2\n3,\"ope", false, "t.csv");
  ASSERT_TRUE(quote.ok()) << quote.status();
  EXPECT_FALSE(CheckCsvSample("a,b\n1,2\n3", true, "t.csv").ok());
}

TEST(CsvSampleTest, RefusesAHeaderWithoutRows) {
  EXPECT_THAT(CheckCsvSample("a,b\n", true, "t.csv").status().message(), HasSubstr("no rows"));
}

TEST(CsvMissingTest, KnowsTheUsualWords) {
  for (const char* word : {"", "?", "NA", "n/a", "NaN", "null", "None", "<NA>", "-nan", "#N/A",
                           "#DIV/0!", "#VALUE!"}) {
    EXPECT_TRUE(IsMissing(word)) << word;
    EXPECT_TRUE(IsMissingNumber(word)) << word;
  }
  for (const char* word : {"-", "--", "---", ".", "..", "\u2013", "\u2014"}) {
    EXPECT_FALSE(IsMissing(word)) << word;
    EXPECT_TRUE(IsMissingNumber(word)) << word;
  }
  for (const char* word : {"0", "no", "nano", "north", "-", "Nana"}) {
    EXPECT_FALSE(IsMissing(word)) << word;
  }
  for (const char* word : {"-1", "-.", "----", "x", "\u00fc", "+"}) {
    EXPECT_FALSE(IsMissingNumber(word)) << word;
  }
}

TEST(CsvDelimiterTest, TheOneThatFitsTheFirstRowsIsTaken) {
  EXPECT_EQ(DelimiterOf("a,b\n1,2\n", "t"), ',');
  EXPECT_EQ(DelimiterOf("a|b\n1|2\n", "t"), '|');
  // A name with a comma, numbers with decimal commas, lists in a field.
  EXPECT_EQ(DelimiterOf("Ort, Land\tx\nBern\t5\n", "t"), '\t');
  EXPECT_EQ(DelimiterOf("Preis, EUR;x;y\n1,5;2,5;3\n", "t"), ';');
  EXPECT_EQ(DelimiterOf("a,b;c;d\n1,p;q;r\n2,p\n", "t"), ',');
  EXPECT_EQ(DelimiterOf("\n\na;b\n1;2\n", "t"), ';');
  EXPECT_EQ(DelimiterOf("\"a;b\n\",b\n\"1;2;3\",2\n", "t"), ',');
  // Where none fits, the first one's errors are told.
  EXPECT_EQ(DelimiterOf("a,b;c\n1,2,3;4;5\n", "t"), ',');
  EXPECT_EQ(DelimiterOf("a\n1\n", "t"), ',');
  EXPECT_EQ(DelimiterOf("", "t"), ',');
}

TEST(CsvFieldTest, IsQuotedWhereItHasToBe) {
  EXPECT_EQ(CsvField("plain text"), "plain text");
  EXPECT_EQ(CsvField(""), "");
  EXPECT_EQ(CsvField("a,b"), "\"a,b\"");
  EXPECT_EQ(CsvField("say \"hi\""), "\"say \"\"hi\"\"\"");
  EXPECT_EQ(CsvField(" edge"), "\" edge\"");
  EXPECT_EQ(CsvField("two\nlines"), "\"two\nlines\"");
}

}  // namespace
}  // namespace traind
