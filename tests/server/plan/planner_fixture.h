// A Job of 5 folds x 20 epochs with 60 s, for whatever plans.
#pragma once

#include <absl/strings/str_cat.h>
#include <absl/time/time.h>
#include <gtest/gtest.h>

#include <string>

#include "server/plan/planner.h"

namespace traind {

inline absl::Time At(double seconds) {
  return absl::FromUnixSeconds(1'800'000'000) + absl::Seconds(seconds);
}

// Accepted at At(0). What is measured, and where folds stand, is a test's to say.
class PlanFixture : public testing::Test {
 protected:
  PlanFixture() {
    in_.spec = &spec_;
    in_.window = {At(0), At(60)};
    in_.now = At(1);
    in_.trigger = Trigger::kMeasured;
    in_.finalize = absl::Milliseconds(150);
    last_.revision = 1;
    last_.folds = spec_.folds;
    last_.epochs = spec_.epochs;
    last_.at = At(0.5);
    in_.last = &last_;
  }
  void AddPendingFolds() {
    for (int fold = 0; fold < spec_.folds; ++fold) {
      in_.folds.push_back({fold, TaskState::kPending, false, 0, {}, absl::InfiniteFuture()});
    }
  }
  static std::string Changes(const PlanOutput& out) {
    std::string text;
    for (const Decision& d : out.decisions) {
      text += absl::StrCat(Name(d.rule), " ", d.from, " -> ", d.to, "; ");
    }
    return text;
  }

  Spec spec_;
  Plan last_;
  PlanInput in_;
};

}  // namespace traind
