// The trials of a Job, as its leaderboard shows them.
// Threads: safe, pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "proto/job.pb.h"

namespace traind {

// A setting of a model, over all its folds. trial -1: the floor.
struct TrialLine {
  int trial = 0;
  std::string name;  // as the portfolio names it; else by its number
  std::string kind;  // of model; empty: not known yet
  int done = 0, partial = 0, running = 0, pending = 0, failed = 0, dropped = 0;  // folds
  std::optional<double> score;          // mean over its folds, out of fold
  double weight = 0;                    // in the answer
  double seconds = 0;                   // of its Attempts
  const v1::Trial* settings = nullptr;  // null: not known
};

// Whether the Job has models of several settings.
bool HasTrials(const v1::Job& job);

// Returns the trials by number. A fold with several models counts once, by the first of them.
// now_s: seconds since 1970, for Attempts that still run.
std::vector<TrialLine> TrialsOf(const v1::Job& job, double now_s);

// Returns them as a leaderboard: those of the largest weight first, then those that score best. The
// floor is among them where it has a weight. Trials of which nothing has begun are left out.
std::string LeaderBoard(const v1::Job& job, double now_s);

// The documents of `trainctl trials`.
std::string TrialTable(const v1::Job& job, double now_s);
// The parameters of a search, the most important first; empty: the Job does not search.
std::string SearchTable(const v1::Job& job);
std::string TrialCsv(const v1::Job& job, double now_s);
std::string TrialJson(const v1::Job& job, double now_s);

// Returns a line that tells which trials have joined the answer since `before`, or by how much its
// score is better; empty: neither.
std::string AnswerChange(const v1::Job& before, const v1::Job& job);

}  // namespace traind
