// A floor's model gives later rows the answers that it gave to the same rows as test rows.
#include "worker/floor/floor_model.h"

#include <absl/strings/str_cat.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/durable_file.h"
#include "common/data/table/folds.h"
#include "common/data/table/table_reader.h"
#include "common/publish/floor_files.h"
#include "tests/common/data/table/table_fixture.h"
#include "worker/floor/floor_model_file.h"
#include "worker/inference/floor_rows_model.h"
#include "worker/inference/rows_file.h"
#include "worker/prepare/linear_floor.h"
#include "worker/prepare/prior_floor.h"

namespace traind {
namespace {

using ::testing::HasSubstr;

constexpr int kFolds = 3, kRows = 180, kTestRows = 40;

class FloorModelTest : public ::testing::Test {
 protected:
  FloorModelTest() {
    std::string pattern = ::testing::TempDir() + "/floor.XXXXXX";
    dir_ = mkdtemp(pattern.data());
    for (int i = 0; i < kRows; ++i) fold_of_.push_back(static_cast<int16_t>(i % kFolds));
  }
  ~FloorModelTest() override { std::filesystem::remove_all(dir_); }

  // y: a class of three, or a number. Test rows have missing values and unseen categories.
  std::shared_ptr<const Table> Make(TargetKind kind, bool texts) {
    std::string train = "a,b,when,body,y\n";
    test_ = train;
    for (int i = 0; i < kRows + kTestRows; ++i) {
      const bool later = i >= kRows;
      const int k = i * 7 % 3;
      const std::string target =
          kind == TargetKind::kClasses ? absl::StrCat("k", k) : absl::StrCat(3 * k + i % 5);
      absl::StrAppend(later ? &test_ : &train, i % 11 == 3 ? "" : absl::StrCat(i % 13), ",",
                      later && i % 4 == 0 ? "unseen" : absl::StrCat("c", (k + i / 50) % 3),
                      ",2024-0", 1 + i % 9, "-10,\"word", k, " of, many w", i % 17, "\",", target,
                      "\n");
    }
    TableSource source;
    source.train = {"train.csv", train};
    source.test = {"test.csv", test_};
    source.target = "y";
    source.target_kind = kind;
    if (texts) source.text_columns = {"body"};
    return testing_table::OpenTable(ReadTable(source));
  }

  std::optional<LinearFloorResult> Fit(const Table& table, bool texts) const {
    SplitSpec split;
    split.kind = SplitKind::kStratified;
    split.folds = kFolds;
    LinearFloorOptions options;
    options.time = absl::Seconds(60);
    options.texts = texts;
    const Metric metric =
        *MetricByName(table.schema().target_kind == TargetKind::kClasses ? "accuracy" : "rmse");
    return LinearFloor(table, {fold_of_, split}, metric, options, SystemClock());
  }

  // Reads the test file as a later file and predicts it with the model on disk.
  std::vector<float> Later() const {
    absl::StatusOr<FloorModel> model = ReadFloorModel(dir_);
    EXPECT_TRUE(model.ok()) << model.status();
    if (!model.ok()) return {};
    FloorRowsModel floor(*std::move(model));
    const auto info = WriteRowsFile(floor.input(), {"later.csv", test_}, dir_ + "/rows",
                                    dir_ + "/ids", [] { return true; });
    EXPECT_TRUE(info.ok()) << info.status();
    const auto rows = RowsFile::Open(dir_ + "/rows", floor.input(), kTestRows);
    EXPECT_TRUE(rows.ok()) << rows.status();
    const size_t outputs = floor.input().outputs();
    std::vector<float> out(kTestRows * outputs);
    const LaterRows block = rows->Block(0);
    for (const auto& [begin, end] : {std::pair(0, 7), std::pair(7, kTestRows)}) {
      EXPECT_TRUE(
          floor
              .Predict(block, begin, end,
                       absl::MakeSpan(out).subspan(static_cast<size_t>(begin) * outputs,
                                                   static_cast<size_t>(end - begin) * outputs))
              .ok());
    }
    return out;
  }

  std::string dir_;
  std::string test_;
  std::vector<int16_t> fold_of_;
};

TEST_F(FloorModelTest, LaterRowsGetTheAnswersOfTheSameTestRows) {
  for (const TargetKind kind : {TargetKind::kClasses, TargetKind::kValue}) {
    for (const bool texts : {false, true}) {
      SCOPED_TRACE(absl::StrCat(kind == TargetKind::kValue ? "values" : "classes",
                                texts ? " of texts" : ""));
      const auto table = Make(kind, texts);
      const auto fitted = Fit(*table, texts);
      ASSERT_TRUE(fitted.has_value());
      ASSERT_TRUE(WriteFloorModel(dir_, fitted->model).ok());
      EXPECT_EQ(fitted->model.folds[0].encoder.words() > 0, texts);
      EXPECT_EQ(Later(), fitted->floor.test.values);
    }
  }
}

TEST_F(FloorModelTest, APriorSaysTheSameOfEveryRow) {
  const auto table = Make(TargetKind::kClasses, false);
  FloorModel model;
  model.name = "prior";
  model.input = InputSchemaOf(table->schema());
  model.prior = {0.25f, 0.25f, 0.5f};
  ASSERT_TRUE(WriteFloorModel(dir_, model).ok());
  const std::vector<float> later = Later();
  ASSERT_EQ(later.size(), size_t{kTestRows} * 3);
  for (size_t i = 0; i < later.size(); ++i) EXPECT_EQ(later[i], model.prior[i % 3]) << i;
}

TEST_F(FloorModelTest, ADamagedFileIsRefused) {
  EXPECT_EQ(ReadFloorModel(dir_).status().code(), absl::StatusCode::kNotFound);
  const auto table = Make(TargetKind::kValue, true);
  const auto fitted = Fit(*table, true);
  ASSERT_TRUE(fitted.has_value());
  ASSERT_TRUE(WriteFloorModel(dir_, fitted->model).ok());
  const std::string path = absl::StrCat(dir_, "/", kFloorModelFile);
  const std::string whole = *ReadFile(path);
  for (const size_t size : {size_t{0}, size_t{7}, size_t{75}, size_t{90}, whole.size() - 1}) {
    std::ofstream(path, std::ios::binary) << whole.substr(0, size);
    EXPECT_EQ(ReadFloorModel(dir_).status().code(), absl::StatusCode::kDataLoss) << size;
  }
  for (const size_t at : {size_t{3}, size_t{60}, size_t{76}, size_t{200}, whole.size() - 5}) {
    std::string changed = whole;
    changed[at] = static_cast<char>(changed[at] + 1);
    std::ofstream(path, std::ios::binary) << changed;
    const absl::Status status = ReadFloorModel(dir_).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << at;
    EXPECT_THAT(std::string(status.message()), HasSubstr("is damaged")) << at;
  }
}

}  // namespace
}  // namespace traind
