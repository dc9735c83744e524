// Further models of the folds, with other settings (Spec::trials above the first): which of them
// use the time that trial 0 leaves (B9). No fold of trial 0 loses anything to them.
//
// A trial that has begun gets its other folds before a new one begins. It gets no more where the
// folds that it has are clearly worse than those of the best trial. One with less than half of the
// folds has no weight in the answer, so none begins that cannot have them, but in a search. After
// several whole trials in a row of which no model answers, more are not expected to gain.
//
// Threads: safe, nothing is kept.
#pragma once

#include <string>
#include <vector>

namespace traind {

struct TrialFold {
  enum State { kOpen, kBusy, kDone, kFailed } state = kOpen;
  double score = 0;  // kDone: of the Job's metric on the rows that the fold validates
};

struct TrialView {
  std::string kind;              // of model
  std::vector<TrialFold> folds;  // all of the spec's
  double fold_s = 0;             // mean of the folds that it has trained; 0: none was measured
  double work = 1;               // beside usual settings of its kind (trial_work.h)
  double running_s = 0;          // that the longest of those that run has taken so far
  bool answers = false;          // the standing Prediction has a model of it
};

struct TrialsInput {
  std::vector<TrialView> trials;  // in the order in which they are tried; [0] is the Plan's
  bool searches = false;          // every trial is wanted, also where others gained nothing
  bool rungs = false;             // a trial goes on only if it is among the best with as many folds
  bool higher_is_better = true;
  double fold_rows = 0;       // that a fold validates; 0: not known
  int classes = 0;            // 0: not known, or numbers
  int columns = 0;            // 0: not known
  double left_s = 0;          // until training ends; infinite: there is no deadline
  int gangs = 1;              // that the Job may use
  int idle = 0;               // of them have nothing to do
  bool answer_known = false;  // the standing Prediction is of all folds that are done
};

struct NextFold {
  int trial = 0, fold = 0;
};

struct TrialsOutput {
  std::vector<NextFold> start;  // at most `idle`
  std::vector<int> worse;       // trials that get no more folds; they have open ones
  bool no_gain = false;         // more time is not expected to gain: nothing starts
  bool all_begun = false;       // no trial has an open fold that it may ever get
  double least_s = 0;  // that the cheapest open fold needs, where none fits; 0: none is open
};

// With rungs (ASHA; Li et al. 2020) a trial stops after 1 fold, after 3, after 9: it goes on when
// it is among the best third of the trials that have those folds, on the same rows.
inline constexpr int kRungFactor = 3;

// The trials of a search that the time suffices for: all, or half of them, or half of those.
int TrialsThatFit(const TrialsInput& in);

// So many whole trials in a row without a model that answers end the search.
inline constexpr int kTrialsWithoutGain = 8;

TrialsOutput ChooseTrials(const TrialsInput& in);

}  // namespace traind
