// Tests that a program that trains folds keeps the contract of worker/task/fold_trainer.h, over the
// protocol of its lines. A program's test instantiates the suite:
//   INSTANTIATE_TEST_SUITE_P(Network, FoldTrainerContractTest,
//   testing::Values(TrainerProgram{...}));
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "tests/contract/task_program.h"

namespace traind {

struct TrainerProgram {
  std::string path;       // in the runfiles
  std::string spec_json;  // of a classification of a table, with no patience
  // The same for a run that does not end by itself; empty: spec_json takes any number of epochs.
  std::string endless_json = {};
  int many_epochs = 200;  // that take long enough to be told of more
};

// A made-up table of three classes in a state folder of its own; its fold 0 is trained.
class FoldTrainerContractTest : public testing::TestWithParam<TrainerProgram> {
 protected:
  void SetUp() override;

  rank_protocol::Train Task(int64_t attempt, int epochs) const;
  // The first checkpoint of a run of so many epochs, which is killed then.
  rank_protocol::CheckpointSaved KilledInTraining(int epochs);
  static const rank_protocol::FoldSaved* LastFold(const TaskProgram& program);
  // The answers are there, of that many rows, and have the digests that were told.
  void ExpectFiles(const rank_protocol::FoldSaved& saved) const;

  static constexpr int kForever = 10'000'000;
  std::string state_, table_;
};

}  // namespace traind
