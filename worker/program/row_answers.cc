#include "worker/program/row_answers.h"

#include <absl/container/flat_hash_set.h>
#include <absl/strings/str_cat.h>

#include <algorithm>
#include <utility>

#include "common/base/job_layout.h"
#include "common/base/status_macros.h"
#include "common/data/table/mapped_file.h"
#include "common/data/table/npy.h"
#include "common/data/table/sample_plan.h"
#include "common/data/table/table_text.h"
#include "common/job_rules/task_rules.h"
#include "worker/program/fold_files.h"
#include "worker/task/failure.h"

namespace traind {
namespace {

// Names tell rows apart only where all are different; else the order does.
std::vector<std::string> DifferentIds(std::vector<std::string> ids) {
  const absl::flat_hash_set<absl::string_view> different(ids.begin(), ids.end());
  if (different.size() < ids.size()) ids.clear();
  return ids;
}

// What messages call the user's file.
std::string NameOf(const std::string& path) { return path.substr(path.rfind('/') + 1); }

absl::Status OfUser(const absl::Status& status) {
  return absl::IsInvalidArgument(status) ? UserError(status.message()) : StorageError(status);
}

}  // namespace

absl::StatusOr<std::unique_ptr<RowAnswers>> RowAnswers::Open(const rank_protocol::Train& train,
                                                             const plain::JobSpec& spec,
                                                             const UserProgram& program) {
  std::unique_ptr<RowAnswers> answers(new RowAnswers);
  const std::string state = absl::StrCat(train.state_dir, "/");
  answers->program_ = program;
  answers->train_path_ = spec.data.train;
  answers->test_path_ = spec.data.test;
  ASSIGN_OR_RETURN(answers->metric_, MetricOf(spec));
  ASSIGN_OR_RETURN(answers->table_, Table::Open(state + train.table));
  const Table& table = *answers->table_;
  ASSIGN_OR_RETURN(const SplitSpec split, ReadSamplePlan(state + SamplesPath(train.job)));
  ASSIGN_OR_RETURN(const auto folds, ReadNpyInt16(state + FoldsPath(train.job)));
  ASSIGN_OR_RETURN(answers->rows_, SplitFold(table, folds.values, train.fold, split));
  const TableSchema& schema = table.schema();
  AnswerRows rows;
  rows.id = schema.id;
  rows.target = schema.target;
  if (schema.target_kind == TargetKind::kClasses) rows.classes = schema.classes;
  answers->validation_ = answers->test_ = rows;
  answers->validation_.count = answers->rows_.validation.size();
  answers->test_.count = static_cast<size_t>(schema.test_rows);
  answers->test_.ids = DifferentIds(table.TestIds());
  return answers;
}

absl::Status RowAnswers::WriteFiles(const std::string& dir) {
  ASSIGN_OR_RETURN(const auto train, MappedFile::Open(train_path_));
  ASSIGN_OR_RETURN(const auto train_text, TableText::Of(train->bytes(), NameOf(train_path_), dir));
  const UserFile training = {train_text->csv().name, train_text->csv().bytes};
  absl::StatusOr<std::vector<std::string>> ids = WriteFoldFiles(training, *table_, rows_, dir);
  if (!ids.ok()) return OfUser(ids.status());
  validation_.ids = DifferentIds(*std::move(ids));
  if (test_path_.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const auto test, MappedFile::Open(test_path_));
  ASSIGN_OR_RETURN(const auto test_text, TableText::Of(test->bytes(), NameOf(test_path_), dir));
  return OfUser(WriteTestFile({test_text->csv().name, test_text->csv().bytes}, *table_, dir));
}

std::vector<std::string> RowAnswers::Variables(const std::string& dir) const {
  std::vector<std::string> variables = {absl::StrCat("TRAIND_TRAIN_CSV=", dir, "/", kTrainCsv),
                                        absl::StrCat("TRAIND_VALID_CSV=", dir, "/", kValidCsv)};
  if (!test_path_.empty()) {
    variables.push_back(absl::StrCat("TRAIND_TEST_CSV=", dir, "/", kTestCsv));
  }
  return variables;
}

absl::StatusOr<std::vector<float>> RowAnswers::ReadNewest(const std::vector<ResultFile>& files,
                                                          const std::string& pattern,
                                                          const AnswerRows& rows,
                                                          const AnswerSample& sample) const {
  const std::vector<ResultFile> matched = Matched(files, {pattern});
  const auto newest = std::max_element(
      matched.begin(), matched.end(),
      [](const ResultFile& a, const ResultFile& b) { return a.modified_ns < b.modified_ns; });
  if (newest == matched.end()) {
    return absl::InvalidArgumentError(absl::StrCat("the program left no file '", pattern, "'"));
  }
  ASSIGN_OR_RETURN(const auto file, MappedFile::Open(newest->path));
  if (!sample.empty()) RETURN_IF_ERROR(sample.Check(file->bytes(), newest->name));
  return ReadAnswerTable(file->bytes(), newest->name, rows);
}

double RowAnswers::Score(const std::vector<float>& oof) const {
  std::vector<int32_t> classes;
  std::vector<float> values;
  for (const int32_t row : rows_.validation) {
    const auto at = static_cast<size_t>(row);
    if (validation_.classes.empty()) {
      values.push_back(table_->TargetValue(Split::kTrain)[at]);
    } else {
      classes.push_back(table_->TargetClass(Split::kTrain)[at]);
    }
  }
  return validation_.classes.empty() ? traind::Score(metric_, oof, values)
                                     : traind::Score(metric_, oof, outputs(), classes);
}

absl::StatusOr<FoldAnswers> RowAnswers::Read(const std::vector<ResultFile>& files,
                                             const AnswerSample& sample) const {
  FoldAnswers answers;
  ASSIGN_OR_RETURN(answers.oof, ReadNewest(files, program_.oof, validation_, AnswerSample()));
  if (!program_.predictions.empty()) {
    ASSIGN_OR_RETURN(answers.test, ReadNewest(files, program_.predictions, test_, sample));
  }
  answers.score = Score(answers.oof);
  return answers;
}

}  // namespace traind
