// Where a program of a user is a model (CommandSpec): the files with a fold's rows that it gets,
// and the predictions that it leaves.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "common/data/table/table.h"
#include "common/job_rules/user_program.h"
#include "common/metrics/metrics.h"
#include "worker/data/fold_rows.h"
#include "worker/program/answer_sample.h"
#include "worker/program/answer_table.h"
#include "worker/program/work_folder.h"
#include "worker/rank_protocol/messages.h"

namespace traind {

// A program's predictions for a fold, whole and checked.
struct FoldAnswers {
  std::vector<float> oof, test;  // [rows, outputs]; test: empty without test rows
  double score = 0;              // of oof
};

// Threads: confined to one.
class RowAnswers {
 public:
  // Reads the Job's table. program: of a model.command. Errors: those of Table::Open and SplitFold.
  static absl::StatusOr<std::unique_ptr<RowAnswers>> Open(const rank_protocol::Train& train,
                                                          const plain::JobSpec& spec,
                                                          const UserProgram& program);

  // Writes the fold's rows to the folder `dir`, which exists. Errors: UserError() where a file was
  // changed; those of reading and writing. REQUIRES: it is called before Read().
  absl::Status WriteFiles(const std::string& dir);
  // The variables that name these files: NAME=path.
  std::vector<std::string> Variables(const std::string& dir) const;

  // Reads the newest files that match the program's patterns. sample: what that of the test rows
  // looks like. Errors: InvalidArgument: there is none, or what is wrong in it.
  absl::StatusOr<FoldAnswers> Read(const std::vector<ResultFile>& files,
                                   const AnswerSample& sample) const;

  int outputs() const { return std::max(1, static_cast<int>(validation_.classes.size())); }

 private:
  RowAnswers() = default;
  absl::StatusOr<std::vector<float>> ReadNewest(const std::vector<ResultFile>& files,
                                                const std::string& pattern,
                                                const AnswerRows& rows,
                                                const AnswerSample& sample) const;
  double Score(const std::vector<float>& oof) const;

  UserProgram program_;
  std::string train_path_, test_path_;  // test: empty without test rows
  Metric metric_;
  std::shared_ptr<const Table> table_;
  FoldRows rows_;
  AnswerRows validation_, test_;
};

}  // namespace traind
