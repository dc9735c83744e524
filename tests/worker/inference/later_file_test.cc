// A later file is encoded exactly as the test file was: the same rows pass through the table,
// and through the model file beside a checkpoint.
#include <absl/strings/str_cat.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <numeric>
#include <string>
#include <vector>

#include "common/base/digest_text.h"
#include "common/base/durable_file.h"
#include "common/base/job_layout.h"
#include "tests/common/data/table/table_fixture.h"
#include "worker/data/row_encoder.h"
#include "worker/inference/rows_file.h"
#include "worker/predict/model_file.h"

namespace traind {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kTrain[] =
    "when,size,colour,\"a, b\",y\n"
    "2024-01-05,1.5,red,10,no\n"
    "2024-02-06,,green,20,yes\n"
    "2024-03-09,2.25,red,30,no\n"
    "2025-07-01,-4,blue,?,yes\n"
    "2025-08-02,8,green,50,no\n";
constexpr char kTest[] =
    "id,when,size,colour,\"a, b\"\n"
    "r1,2026-01-01,3,red,1\n"
    "\"r,2\",,NA,mauve,\n"
    "r3,2024-02-06,1e9,,7\n";

class LaterFileTest : public ::testing::Test {
 protected:
  LaterFileTest() {
    std::string pattern = ::testing::TempDir() + "/later.XXXXXX";
    dir_ = mkdtemp(pattern.data());
    table_ =
        testing_table::OpenTable(testing_table::Read(kTrain, kTest, TargetKind::kClasses, "id"));
    file_.input = InputSchemaOf(table_->schema());
    // The last row belongs to another fold, so no training row has its colour blue and its
    // size.
    const std::vector<int32_t> rows = {0, 1, 2, 4};
    encoder_ = std::make_unique<RowEncoder>(RowEncoder::Fit(table_, rows));
    file_.encoder = encoder_->state();
    file_.job = "job-1";
    file_.table_sha256 = "k";
    file_.spec_json = "{\"api\":\"v1\"}";
    EXPECT_TRUE(WriteModelFile(dir_, ".", file_).ok());
  }
  ~LaterFileTest() override { std::filesystem::remove_all(dir_); }

  absl::StatusOr<RowsFileInfo> Write(const std::string& text,
                                     const std::string& name = "later.csv") {
    return WriteRowsFile(file_.input, {name, text}, dir_ + "/rows.bin", dir_ + "/ids.bin",
                         [] { return true; });
  }
  // Returns the text's rows as the restored model encodes them.
  EncodedRows Encoded(const std::string& text, const std::string& name = "later.csv") {
    const auto info = Write(text, name);
    EXPECT_TRUE(info.ok()) << info.status();
    const auto model = ReadModelFile(dir_, ".");
    EXPECT_TRUE(model.ok()) << model.status();
    const auto rows = RowsFile::Open(dir_ + "/rows.bin", model->input, info->rows);
    EXPECT_TRUE(rows.ok()) << rows.status();
    return RowEncoder(model->encoder).Encode(rows->Block(0), 0, rows->RowsOf(0));
  }

  std::string dir_;
  std::shared_ptr<const Table> table_;
  std::unique_ptr<RowEncoder> encoder_;
  ModelFile file_;
};

TEST_F(LaterFileTest, TextsComeBackRowByRowAndTheTokenizerWithTheModel) {
  file_.input.text_columns = {"colour", "title"};
  file_.tokenizer = std::string("words\0\xff", 7);
  ASSERT_TRUE(WriteModelFile(dir_, ".", file_).ok());
  const auto model = ReadModelFile(dir_, ".");
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(model->tokenizer, file_.tokenizer);
  const auto info = Write(
      "id,title,when,size,colour,\"a, b\"\n1,\"one, two\",2026-01-01,3,red,1\n2,NA,,NA,,\n"
      "3,last,,1,blue,2\n");
  ASSERT_TRUE(info.ok()) << info.status();
  const auto rows = RowsFile::Open(dir_ + "/rows.bin", model->input, info->rows);
  ASSERT_TRUE(rows.ok()) << rows.status();
  EXPECT_THAT(rows->Block(0).texts, ElementsAre("red\none, two", "\n", "blue\nlast"));
  EXPECT_THAT(Write(kTest).status().message(), HasSubstr("'title'"));
}

// The model of a regression that learns a transformed target.
ModelFile Transformed(ModelFile file) {
  file.input.classes.clear();
  file.input.targets = {"y"};
  file.encoder.target_mean = {2};
  file.encoder.target_scale = {0.5};
  file.encoder.transforms = {
      FitTransform(TransformKind::kYeoJohnson, {-3, -1, 0, 1, 2, 4, 5, 9, 12, 30, 31})};
  return file;
}

TEST_F(LaterFileTest, TransformsOfTargetsComeBackWithTheModel) {
  const ModelFile file = Transformed(file_);
  ASSERT_TRUE(WriteModelFile(dir_, ".", file).ok());
  const auto read = ReadModelFile(dir_, ".");
  ASSERT_TRUE(read.ok()) << read.status();
  ASSERT_EQ(read->encoder.transforms.size(), 1u);
  EXPECT_EQ(read->encoder.transforms[0].kind, TransformKind::kYeoJohnson);
  for (const double z : {-100.0, -1.5, 0.0, 0.7, 100.0}) {
    EXPECT_EQ(Inverted(read->encoder.transforms[0], z), Inverted(file.encoder.transforms[0], z));
  }
}

TEST_F(LaterFileTest, ATransformThatIsNotSoundIsDamage) {
  for (const auto& spoil : std::vector<void (*)(TargetTransform&)>{
           [](TargetTransform& t) { t.unit = 0; }, [](TargetTransform& t) { t.lambda = -1; },
           [](TargetTransform& t) { t.most = t.least - 1; },
           [](TargetTransform& t) { t.kind = TransformKind::kNone; }}) {
    ModelFile file = Transformed(file_);
    spoil(file.encoder.transforms[0]);
    ASSERT_TRUE(WriteModelFile(dir_, ".", file).ok());
    EXPECT_EQ(ReadModelFile(dir_, ".").status().code(), absl::StatusCode::kDataLoss);
  }
  ModelFile file = Transformed(file_);
  file.encoder.transforms.push_back(file.encoder.transforms[0]);
  ASSERT_TRUE(WriteModelFile(dir_, ".", file).ok());
  EXPECT_EQ(ReadModelFile(dir_, ".").status().code(), absl::StatusCode::kDataLoss);
}

// Written by the last engine of format 4; only the digest is made here.
TEST_F(LaterFileTest, AFileOfFormat4HasNoTransformsAndIsStillRead) {
  const std::string body =
      R"({"format":4,"job":"j","fold":0,"trial":0,"seed":7,"table_sha256":"aa",)"
      R"("spec":"{\"data\":{},\"task\":{\"type\":\"regression\"}}",)"
      R"("input":{"features":[{"name":"a","kind":"numeric"}],"id":"id","targets":["t"],)"
      R"("classes":[]},"encoder":{"numeric":[{"feature":0,"mean":0.5,"inverse_scale":2.0,)"
      R"("indicator":false,"outliers":"smooth"}],"categorical":[],"cardinalities":[],"window":1,)"
      R"("horizon":0,"target_mean":[4.0],"target_scale":[2.0]}})";
  ASSERT_TRUE(WriteFileDurably(dir_ + "/model.json", WithDigest("model", body)).ok());
  const auto read = ReadModelFile(dir_, ".");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_TRUE(read->encoder.transforms.empty());
  EXPECT_EQ(read->encoder.target_mean, std::vector<double>{4});
  std::vector<float> answers = {1, -7};
  ToOwnUnit(read->encoder.transforms, {}, absl::MakeSpan(answers));
  EXPECT_THAT(answers, ElementsAre(1, -7));
  std::string later = body;
  later.replace(later.find(":4,"), 3, ":6,");
  ASSERT_TRUE(WriteFileDurably(dir_ + "/model.json", WithDigest("model", later)).ok());
  EXPECT_THAT(ReadModelFile(dir_, ".").status().message(), HasSubstr("format 6"));
}

TEST_F(LaterFileTest, TheTestFileIsEncodedBitByBitAsByTheTable) {
  const EncodedRows expected = encoder_->Encode(Split::kTest, 0, 3);
  const EncodedRows later = Encoded(kTest);
  EXPECT_EQ(later.rows, 3);
  EXPECT_EQ(later.numeric, expected.numeric);
  EXPECT_EQ(later.codes, expected.codes);
  EXPECT_EQ(*ReadFile(dir_ + "/ids.bin"), "2:r13:r,22:r3");
}

TEST_F(LaterFileTest, LargeNumbersAreThoseOfTheTable) {
  std::string train = "seconds,y\n", test = train;
  for (int i = 0; i < 220; ++i) {
    absl::StrAppend(i < 200 ? &train : &test, 1'700'000'000 + i, ",", i % 2, "\n");
  }
  table_ = testing_table::OpenTable(testing_table::Read(train, test));
  file_.input = InputSchemaOf(table_->schema());
  std::vector<int32_t> rows(200);
  std::iota(rows.begin(), rows.end(), 0);
  const RowEncoder encoder = RowEncoder::Fit(table_, rows);
  file_.encoder = encoder.state();
  ASSERT_TRUE(WriteModelFile(dir_, ".", file_).ok());
  const EncodedRows expected = encoder.Encode(Split::kTest, 0, 20);
  EXPECT_EQ(Encoded(test).numeric, expected.numeric);
  EXPECT_NE(expected.numeric[0], expected.numeric[1]) << "a second later";
}

TEST_F(LaterFileTest, SmoothlyClippedNumbersAreThoseOfTheTable) {
  std::string train = "x,y\n", test = train;
  for (int i = 0; i < 220; ++i) {
    const int x = i % 10 == 0 ? i * i : i;  // a heavy tail
    absl::StrAppend(i < 200 ? &train : &test, x, ",", i % 2, "\n");
  }
  table_ = testing_table::OpenTable(testing_table::Read(train, test));
  file_.input = InputSchemaOf(table_->schema());
  std::vector<int32_t> rows(200);
  std::iota(rows.begin(), rows.end(), 0);
  const RowEncoder encoder = RowEncoder::Fit(table_, rows, {}, TargetForm::kAuto,
                                             InputWidths::kFold, OutlierForm::kSmooth);
  file_.encoder = encoder.state();
  ASSERT_TRUE(WriteModelFile(dir_, ".", file_).ok());
  const EncodedRows expected = encoder.Encode(Split::kTest, 0, 20);
  EXPECT_EQ(Encoded(test).numeric, expected.numeric);
  EXPECT_NE(expected.numeric, RowEncoder::Fit(table_, rows).Encode(Split::kTest, 0, 20).numeric);
}

TEST_F(LaterFileTest, OrderSeparatorsAndOtherColumnsMakeNoDifference) {
  const std::string text =
      "colour\tnew\ta, b\tid\tsize\twhen\n"
      "red\tx\t1\tr1\t3\t2026-01-01\n"
      "mauve\tx\t\tr2\tNA\t\n"
      "\tx\t7\tr3\t1e9\t2024-02-06\n";
  const EncodedRows expected = encoder_->Encode(Split::kTest, 0, 3);
  const EncodedRows later = Encoded(text, "later.tsv");
  EXPECT_EQ(later.numeric, expected.numeric);
  EXPECT_EQ(later.codes, expected.codes);
  EXPECT_THAT(Write(text, "later.tsv")->warnings, ElementsAre(HasSubstr("'new'")));
}

TEST_F(LaterFileTest, ErrorsNameTheirCause) {
  const std::string head = "id,when,size,colour,\"a, b\"\n";
  const auto error = [&](const std::string& text) {
    return std::string(Write(text).status().message());
  };
  EXPECT_EQ(error("id,when,colour,\"a, b\"\nr,2024-01-01,red,1\n"),
            "later.csv: column 'size' is missing: the models were trained on it");
  EXPECT_THAT(error("id:when:size\n1:2:3\n"),
              HasSubstr("its one column is 'id:when:size': commas, tabs, semicolons or bars"));
  EXPECT_EQ(
      error(head + "r1,2024-01-01,1,red,1\nr2,2024-01-01,tall,red,1\n"),
      "later.csv: row 2 (line 3), column 'size': 'tall' is not a number, but the training data "
      "has numbers there");
  EXPECT_THAT(error(head + "r1,soon,1,red,1\n"), HasSubstr("'soon' is not a date"));
  EXPECT_THAT(error(head), HasSubstr("no row"));
  EXPECT_THAT(error(""), HasSubstr("empty"));
  EXPECT_THAT(error(head + "r1,2024-01-01,1\n"), HasSubstr("row 1"));
}

TEST_F(LaterFileTest, RowsBeyondABlockLieInTheNext) {
  std::string text = "id,when,size,colour,\"a, b\"\n";
  const int64_t rows = kRowsPerBlock + 3;
  for (int64_t i = 0; i < rows; ++i) {
    absl::StrAppend(&text, "r", i, ",2024-01-01,", i, i % 2 == 0 ? ",red," : ",green,", i, "\n");
  }
  const auto info = Write(text);
  ASSERT_TRUE(info.ok()) << info.status();
  EXPECT_EQ(info->rows, rows);
  const auto file = RowsFile::Open(dir_ + "/rows.bin", file_.input, rows);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->blocks(), 2);
  EXPECT_EQ(file->RowsOf(1), 3);
  for (size_t f = 0; f < file_.input.features.size(); ++f) {
    if (file_.input.features[f].name == "size") {
      EXPECT_EQ(file->Block(1).numbers[f][2], static_cast<float>(rows - 1));
    } else if (file_.input.features[f].name == "colour") {
      EXPECT_NE(file->Block(1).codes[f][0], file->Block(1).codes[f][1]);
    }
  }
  EXPECT_EQ(RowsFile::Open(dir_ + "/rows.bin", file_.input, rows - 1).status().code(),
            absl::StatusCode::kDataLoss);
}

TEST_F(LaterFileTest, ReadingCanBeStopped) {
  const auto stopped = WriteRowsFile(file_.input, {"later.csv", kTest}, dir_ + "/rows.bin",
                                     dir_ + "/ids.bin", [] { return false; });
  EXPECT_EQ(stopped.status().code(), absl::StatusCode::kCancelled);
  EXPECT_FALSE(std::filesystem::exists(dir_ + "/rows.bin"));
}

TEST_F(LaterFileTest, AModelFileThatIsNotAsItWasWrittenIsRefused) {
  const std::string path = dir_ + "/" + kModelFile;
  const std::string text = *ReadFile(path);
  EXPECT_EQ(ReadModelFile(dir_, ".")->job, "job-1");
  for (const auto& [from, to] : {std::pair("red", "rad"), std::pair("\"mean\":", "\"maen\":")}) {
    std::string changed = text;
    changed.replace(changed.find(from), std::string(from).size(), to);
    ASSERT_TRUE(WriteFileDurably(path, changed).ok());
    EXPECT_EQ(ReadModelFile(dir_, ".").status().code(), absl::StatusCode::kDataLoss) << from;
  }
  for (const size_t size : {size_t{0}, size_t{5}, text.size() / 2, text.size() - 1}) {
    ASSERT_TRUE(WriteFileDurably(path, text.substr(0, size)).ok());
    EXPECT_EQ(ReadModelFile(dir_, ".").status().code(), absl::StatusCode::kDataLoss) << size;
  }
  std::filesystem::remove(path);
  EXPECT_EQ(ReadModelFile(dir_, ".").status().code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace traind
