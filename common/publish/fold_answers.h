// The combined predictions of each fold's models.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "common/publish/ensemble.h"
#include "common/publish/floor_files.h"
#include "common/publish/publisher.h"
#include "common/publish/scoring_data.h"
#include "common/publish/test_values.h"

namespace traind {

// A model whose files match their digests, with the files' values.
struct LoadedMember {
  Member member;
  std::vector<float> oof;                  // [rows of the fold, C]
  std::shared_ptr<const TestValues> test;  // [test_rows, C]; null without test rows
  size_t candidate = 0;                    // its number among those that were to choose from
};

struct FoldAnswer {
  std::vector<LoadedMember> models;  // by trial and seed; at least one
  // Each model's weight in the fold's answer; they sum to 1. Empty: all are equal.
  std::vector<double> shares;
  bool complete = false;   // the first model of one of its trials is complete
  double score = 0;        // the Job's metric on the fold's rows
  std::vector<float> oof;  // [rows of the fold, C]: the mean over the models
};
using AnswersByFold = std::map<int, FoldAnswer>;

struct Answers {
  AnswersByFold folds;
  bool trials = false;       // models of several trials were weighed
  double floor = 0;          // the floor's weight beside them, where trials were weighed
  std::set<int> complete;    // folds whose first model of trial 0 is complete
  std::vector<Member> idle;  // usable models without a weight
  std::vector<WorseModel> worse;
};

// Chooses, for each model of each fold, the best usable one among the request's and the standing
// Prediction's: a complete one before an incomplete one, then the newest Attempt, then the one that
// trained longest. The models of a fold's trial are averaged in the order of their seeds, without
// those that would make the score on the fold's rows worse. Several trials are weighed: kMean: all
// alike; kWeighted: by their scores; kGreedy: by SelectTrials, together with the floor.
Answers ChooseAnswers(const PublishRequest& request, const ScoringData& scoring, EnsembleKind kind,
                      const std::optional<StandingFloor>& floor,
                      const std::vector<Member>& standing);

// Returns the mean of exactly these members of one fold of a standing Prediction, by their weights;
// nullopt if a file is missing or damaged.
std::optional<FoldAnswer> AnswerOf(const PublishRequest& request, const ScoringData& scoring,
                                   const std::vector<Member>& members);

}  // namespace traind
