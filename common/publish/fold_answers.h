// The combined predictions of each fold's models.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "common/publish/publisher.h"
#include "common/publish/scoring_data.h"
#include "common/publish/test_values.h"

namespace traind {

// A model whose files match their digests, with the files' values.
struct LoadedMember {
  Member member;
  std::vector<float> oof;                  // [rows of the fold, C]
  std::shared_ptr<const TestValues> test;  // [test_rows, C]; null without test rows
};

struct FoldAnswer {
  std::vector<LoadedMember> models;  // by seed; at least one
  bool complete = false;             // the fold's first model is complete
  double score = 0;                  // the Job's metric on the fold's rows
  std::vector<float> oof;            // [rows of the fold, C]: the mean over the models
};
using AnswersByFold = std::map<int, FoldAnswer>;

// Chooses, for each model of each fold, the best usable one among the request's and the standing
// Prediction's: a complete one before an incomplete one, then the newest Attempt, then the one that
// trained longest. A fold's models are averaged in the order of their seeds, without those that
// would make the fold's score on its own rows worse.
AnswersByFold ChooseAnswers(const PublishRequest& request, const ScoringData& scoring,
                            const std::vector<Member>& standing);

// Returns the mean of exactly these members of one fold of a standing Prediction; nullopt if a file
// is missing or damaged.
std::optional<FoldAnswer> AnswerOf(const PublishRequest& request, const ScoringData& scoring,
                                   const std::vector<Member>& members);

}  // namespace traind
