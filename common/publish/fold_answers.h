// What the models of each fold answer together.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "common/publish/publisher.h"
#include "common/publish/scoring_data.h"
#include "common/publish/test_values.h"

namespace traind {

// A model whose files are what its digests say, with what they hold.
struct LoadedMember {
  Member member;
  std::vector<float> oof;                  // [rows of the fold, C]
  std::shared_ptr<const TestValues> test;  // [test_rows, C]; null without test rows
};

struct FoldAnswer {
  std::vector<LoadedMember> models;  // by seed; at least one
  bool complete = false;             // the fold's first model is
  double score = 0;                  // the Job's metric on the fold's rows
  std::vector<float> oof;            // [rows of the fold, C]: the mean over the models
};
using AnswersByFold = std::map<int, FoldAnswer>;

// Of each fold's model the first whole one among the request's and the standing
// Prediction's: complete before incomplete, then the newest Attempt, then the one that
// trained longest. They are averaged in the order of their seeds, but for those with which
// the fold would score worse on its own rows.
AnswersByFold ChooseAnswers(const PublishRequest& request, const ScoringData& judge,
                            const std::vector<Member>& standing);

// The mean of exactly these members of one fold, of a Prediction that stands; none where a
// file is gone or damaged.
std::optional<FoldAnswer> AnswerOf(const PublishRequest& request, const ScoringData& judge,
                                   const std::vector<Member>& members);

}  // namespace traind
