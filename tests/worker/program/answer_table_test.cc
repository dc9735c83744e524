#include "worker/program/answer_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace traind {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::HasSubstr;

AnswerRows Classes() {
  AnswerRows rows;
  rows.count = 3;
  rows.id = "id";
  rows.ids = {"7", "8", "9"};
  rows.target = "kind";
  rows.classes = {"no", "yes"};
  return rows;
}

AnswerRows Values() {
  AnswerRows rows;
  rows.count = 3;
  rows.target = "y";
  return rows;
}

std::vector<float> Read(const std::string& text, const AnswerRows& rows) {
  const auto read = ReadAnswerTable(text, "sub.csv", rows);
  EXPECT_TRUE(read.ok()) << read.status();
  return read.ok() ? *read : std::vector<float>();
}

// Returns the error; "": there is none.
std::string Error(const std::string& text, const AnswerRows& rows) {
  const absl::Status status = ReadAnswerTable(text, "sub.csv", rows).status();
  EXPECT_TRUE(status.ok() || absl::IsInvalidArgument(status)) << status;
  return std::string(status.message());
}

TEST(AnswerTableTest, ProbabilitiesComeInTheOrderOfTheIds) {
  EXPECT_THAT(Read("id,p_yes,p_no\n9,0.9,0.1\n7,0.25,0.75\n8,1,0\n", Classes()),
              ElementsAre(0.75F, 0.25F, 0, 1, FloatNear(0.1F, 1e-6F), FloatNear(0.9F, 1e-6F)));
}

TEST(AnswerTableTest, ColumnsMayHaveTheNamesOfTheClasses) {
  EXPECT_THAT(Read("yes,no,id\n1,0,7\n0,1,8\n0.5,0.5,9\n", Classes()),
              ElementsAre(0, 1, 1, 0, 0.5F, 0.5F));
}

TEST(AnswerTableTest, ProbabilitiesAreScaledToSumToOne) {
  EXPECT_THAT(Read("id,no,yes\n7,0.495,0.495\n8,1,0\n9,0,1\n", Classes()),
              ElementsAre(0.5F, 0.5F, 1, 0, 0, 1));
}

TEST(AnswerTableTest, NumbersMayHaveDecimalCommas) {
  EXPECT_THAT(Read("row;y\n0;0,5\n1;1.002,5\n2;-1\n", Values()), ElementsAre(0.5, 1002.5, -1));
}

TEST(AnswerTableTest, LabelsAreCertain) {
  for (const char* column : {"kind", "prediction", "anything"}) {
    EXPECT_THAT(Read(std::string("id,") + column + "\n8,yes\n7,no\n9,no\n", Classes()),
                ElementsAre(1, 0, 0, 1, 1, 0))
        << column;
  }
}

TEST(AnswerTableTest, NumbersOfClassesMayBeWrittenInAnotherWay) {
  AnswerRows rows = Classes();
  rows.classes = {"0", "1"};
  EXPECT_THAT(Read("id,kind\n7,1.0\n8,0.0\n9,1\n", rows), ElementsAre(0, 1, 1, 0, 0, 1));
}

TEST(AnswerTableTest, ValuesWithoutIdsAreInOrder) {
  EXPECT_THAT(Read("y\n1.5\n-2\n3e2\n", Values()), ElementsAre(1.5F, -2, 300));
}

TEST(AnswerTableTest, RowsMayBeNumbered) {
  EXPECT_THAT(Read("row,y\n2,30\n0,10\n1,20\n", Values()), ElementsAre(10, 20, 30));
  EXPECT_THAT(Error("row,y\n0,30\n0,10\n1,20\n", Values()),
              HasSubstr("sub.csv: row 2 (line 3), column 'row': '0' is there twice"));
  EXPECT_THAT(Error("row,y\n0,30\n1,10\n3,20\n", Values()),
              HasSubstr("row 3 (line 4), column 'row': '3' is no row"));
}

TEST(AnswerTableTest, AColumnOfIdsThatCannotTellRowsApartIsPassedOver) {
  AnswerRows rows = Values();
  rows.id = "id";  // without names
  EXPECT_THAT(Read("id,y\n5,1\n5,2\n5,3\n", rows), ElementsAre(1, 2, 3));
}

TEST(AnswerTableTest, AnotherDelimiterWillDo) {
  EXPECT_THAT(Read("id;kind\n7;no\n8;no\n9;yes\n", Classes()), ElementsAre(1, 0, 1, 0, 0, 1));
}

TEST(AnswerTableTest, WrongIdsAreNamed) {
  EXPECT_THAT(Error("key,kind\n7,no\n8,no\n9,no\n", Classes()),
              HasSubstr("sub.csv: there is no column 'id', which names the rows"));
  EXPECT_EQ(Error("id,kind\n7,no\n8,no\n8,no\n", Classes()),
            "sub.csv: row 3 (line 4), column 'id': '8' is there twice; before that in row 2");
  EXPECT_EQ(Error("id,kind\n7,no\n8,no\n10,no\n", Classes()),
            "sub.csv: row 3 (line 4), column 'id': '10' is none of the 3 rows to predict");
  EXPECT_EQ(Error("id,kind\n7,no\n9,no\n", Classes()),
            "sub.csv: there are 2 rows, but 3 to predict; the first that is missing is '8'");
}

TEST(AnswerTableTest, AWrongNumberOfRowsIsNamed) {
  EXPECT_EQ(Error("y\n1\n2\n", Values()),
            "sub.csv: there are 2 rows, but 3 to predict; the first that is missing is row '2'");
  EXPECT_EQ(Error("y\n1\n2\n3\n4\n", Values()),
            "sub.csv: row 4 (line 5) is one too many: there are 3 rows to predict");
  EXPECT_NE(Error("y\n", Values()), "");
  EXPECT_NE(Error("", Values()), "");
}

TEST(AnswerTableTest, WrongColumnsAreNamed) {
  EXPECT_EQ(Error("id,p_no\n7,1\n8,1\n9,1\n", Classes()),
            "sub.csv: there are no probabilities of class 'yes'");
  EXPECT_EQ(Error("id,p_no,p_yes,p_both\n7,1,0,0\n", Classes()),
            "sub.csv: column 'p_both' is of no class; there are 'no', 'yes'");
  EXPECT_EQ(Error("id,a,b\n7,1,0\n", Classes()),
            "sub.csv: there is no column 'kind' or 'prediction', and no column for each class; its "
            "columns are 'id', 'a', 'b'");
  EXPECT_EQ(Error("a,b\n1,0\n", Values()),
            "sub.csv: there is no column 'y' or 'prediction'; its columns are 'a', 'b'");
  EXPECT_THAT(Error("id,kind\n7,no\n8\n9,no\n", Classes()), HasSubstr("row 2"));
}

TEST(AnswerTableTest, WrongPredictionsAreNamed) {
  EXPECT_EQ(Error("y\n1\nnan\n3\n", Values()),
            "sub.csv: row 2 (line 3), column 'y': the prediction is missing ('nan')");
  EXPECT_EQ(Error("y\n1\n2\ninf\n", Values()),
            "sub.csv: row 3 (line 4), column 'y': 'inf' is not finite");
  EXPECT_EQ(Error("y\n1\ntwo\n3\n", Values()),
            "sub.csv: row 2 (line 3), column 'y': 'two' is no number");
  EXPECT_EQ(Error("id,kind\n7,no\n8,maybe\n9,no\n", Classes()),
            "sub.csv: row 2 (line 3), column 'kind': 'maybe' is no class; there are 'no', 'yes'");
  EXPECT_EQ(Error("id,kind\n7,no\n8,\n9,no\n", Classes()),
            "sub.csv: row 2 (line 3), column 'kind': the prediction is missing ('')");
  EXPECT_EQ(Error("id,no,yes\n7,0.5,0.5\n8,1.5,-0.5\n9,0,1\n", Classes()),
            "sub.csv: row 2 (line 3), column 'no': '1.5' is no probability, from 0 to 1");
  EXPECT_EQ(
      Error("id,no,yes\n7,0.5,0.5\n8,0.5,0.25\n9,0,1\n", Classes()),
      "sub.csv: row 2 (line 3), column 'no': the row's probabilities sum to 0.75 instead of 1");
}

TEST(AnswerTableTest, HalfAFileIsNoAnswer) {
  const std::string whole = "id,no,yes\n7,0.5,0.5\n8,0.25,0.75\n9,0,1\n";
  for (size_t bytes = 0; bytes < whole.size() - 1; ++bytes) {
    EXPECT_NE(Error(whole.substr(0, bytes), Classes()), "") << bytes;
  }
}

}  // namespace
}  // namespace traind
