#include "server/domain/decision.h"

#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>
#include <absl/strings/str_split.h>
#include <absl/strings/strip.h>

namespace traind {
namespace {

constexpr absl::string_view kAttempt = "attempt ";

// A note's text is `before`, its number (unless the kind has none) and one of the ends.
struct NoteText {
  TrialNote::Kind kind;
  bool numbered;
  absl::string_view before, after_one, after;
};
constexpr NoteText kNotes[] = {
    {TrialNote::kBegun, false, "models of further trials, as time allows", "", ""},
    {TrialNote::kFewer, true, "", " trial, and more as time allows",
     " trials, and more as time allows"},
    {TrialNote::kWorse, true, "trial ", " gets no more folds", " gets no more folds"},
    {TrialNote::kNoGain, false, "more time is not expected to gain", "", ""},
    {TrialNote::kNoneFits, false, "no further model fits", "", ""},
    {TrialNote::kLayer, false, "a second layer joins the trials", "", ""},
    {TrialNote::kAwaitsProposal, false, "slots wait for proposals", "", ""},
    {TrialNote::kDrawsItself, false, "trials drawn by tpe, until one is proposed", "", ""},
};

std::vector<int64_t> AttemptsIn(absl::string_view text) {
  std::vector<int64_t> attempts;
  for (absl::string_view part : absl::StrSplit(text, ", ")) {
    int64_t attempt = 0;
    if (absl::ConsumePrefix(&part, kAttempt) && absl::SimpleAtoi(part, &attempt)) {
      attempts.push_back(attempt);
    }
  }
  return attempts;
}

TrialNote TrialNoteIn(absl::string_view text) {
  for (const NoteText& known : kNotes) {
    absl::string_view rest = text;
    if (!absl::ConsumePrefix(&rest, known.before)) continue;
    TrialNote note{known.kind, 0};
    if (known.numbered) {
      const bool ends =
          absl::ConsumeSuffix(&rest, known.after) || absl::ConsumeSuffix(&rest, known.after_one);
      if (!ends || !absl::SimpleAtoi(rest, &note.number)) continue;
    }
    if (TrialNoteText(note) == text) return note;
  }
  return {};
}

}  // namespace

std::string AttemptsText(const std::vector<int64_t>& attempts) {
  return absl::StrJoin(attempts, ", ", [](std::string* out, int64_t attempt) {
    absl::StrAppend(out, kAttempt, attempt);
  });
}

std::string TrialNoteText(const TrialNote& note) {
  for (const NoteText& known : kNotes) {
    if (known.kind != note.kind) continue;
    if (!known.numbered) return std::string(known.before);
    return absl::StrCat(known.before, note.number,
                        note.number == 1 ? known.after_one : known.after);
  }
  return "";
}

void ReadTexts(Decision& decision) {
  if (decision.rule == DecisionRule::kRetry) decision.attempts = AttemptsIn(decision.from);
  if (decision.rule == DecisionRule::kB9) decision.trial_note = TrialNoteIn(decision.to);
}

}  // namespace traind
