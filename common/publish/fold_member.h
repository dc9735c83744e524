// A fold's saved predictions, as a part of a Prediction.
#pragma once

#include <cstdint>

#include "common/facts/facts.h"
#include "common/publish/prediction.h"

namespace traind {

// The weight is left to Publish; what the Rank does not know, to the caller: the kind.
inline Member MemberOf(int64_t attempt, const facts::FoldSaved& fold) {
  Member member;
  member.fold = fold.fold;
  member.attempt = attempt;
  member.complete = fold.complete;
  member.score = fold.score;
  member.epochs_done = fold.epochs_done;
  member.oof = fold.oof;
  member.oof_sha256 = fold.oof_sha256;
  member.test = fold.test;
  member.test_sha256 = fold.test_sha256;
  member.best_epoch = fold.best_epoch;
  member.step = fold.step;
  member.trial = fold.trial;
  member.seed = fold.seed;
  return member;
}

}  // namespace traind
