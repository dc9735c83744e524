// A recorded change of a Job's Plan. The core decides by the typed fields; the texts are for
// people. The store keeps the texts alone: they are written, and read back, in decision.cc.
// Threads: safe, pure.
#pragma once

#include <absl/strings/string_view.h>
#include <absl/time/time.h>

#include <cstdint>
#include <string>
#include <vector>

#include "common/facts/reasons.h"

namespace traind {

// A note about the Job's further trials, which a B9 Decision makes. A Job has each at most once.
struct TrialNote {
  enum Kind {
    kNone,
    kBegun,           // the first of them begins
    kFewer,           // at first only `number` are expected to fit
    kWorse,           // trial `number` gets no more folds
    kNoGain,          // no more are begun: they are not expected to gain
    kNoneFits,        // no more are begun: there is too little time
    kLayer,           // a second layer joins them
    kAwaitsProposal,  // slots have nothing to do until a client proposes one
    kDrawsItself,     // they are drawn, because no client proposes them
  };
  Kind kind = kNone;
  int number = 0;  // 0: the kind has none

  friend bool operator==(const TrialNote& a, const TrialNote& b) {
    return a.kind == b.kind && a.number == b.number;
  }
};

struct Decision {
  absl::Time at;
  DecisionRule rule = DecisionRule::kOther;
  std::string cause;
  std::string from;
  std::string to;
  std::string effect = {};  // expected of it; may be empty
  // kRetry: the Attempts whose ends it is about.
  std::vector<int64_t> attempts = {};
  // kB9: kNone where it is about something else.
  TrialNote trial_note = {};
};

// Decision::from of a retry: "attempt 7, attempt 8".
std::string AttemptsText(const std::vector<int64_t>& attempts);
// Decision::to of a note.
std::string TrialNoteText(const TrialNote& note);
// Fills the typed fields of a Decision whose texts were read.
void ReadTexts(Decision& decision);

}  // namespace traind
