// Renders a running Job as text: pure functions of the Job and the time.
#pragma once

#include <absl/strings/string_view.h>
#include <absl/time/time.h>

#include <string>
#include <vector>

#include "proto/job.pb.h"

namespace traind {

struct Moment {
  absl::Time now;             // of this machine
  absl::Duration since_seen;  // since this state of the Job arrived
};

enum class Outlook { kNone, kOnTrack, kTight, kLate };

// Compares the estimate with the deadline. Tight: less than a tenth of the Job's window would be
// left. kNone: no deadline, or no estimate yet.
Outlook OutlookOf(const v1::Job& job);

// Returns the time until the deadline, by the daemon's clock. REQUIRES: job.has_deadline().
absl::Duration TimeLeft(const v1::Job& job, const Moment& moment);

// Returns "digits-7f3k RUNNING  folds 2/5 done  best accuracy 0.981 (fold 2)  deadline in 41s: on
// track, 5/5 folds fit", shortened to width columns (0: not at all).
std::string JobLine(const v1::Job& job, const Moment& moment, int width);

// Returns "fold 3  31%|###.......| 12/40 ep  620/2000 [00:10<00:23, 3.26it/s, 209 samples/s] loss
// 0.214", with a bar that fills width columns. Parts that do not fit are left out, the least
// important first.
std::string FoldLine(const v1::Job& job, const v1::Fold& fold, const Moment& moment, int width);

// Returns the job line and a line for each running fold, at most `rows` of them.
std::vector<std::string> ProgressLines(const v1::Job& job, const Moment& moment, int width,
                                       int rows);

// Returns one line for logs, with the running folds in short.
std::string PlainLine(const v1::Job& job, const Moment& moment);

// Returns a key that changes with the state of the Job or of a fold; each change deserves a line of
// its own.
std::string MilestoneKey(const v1::Job& job);

// Cuts the text to width columns, with ".." at the end.
std::string Shorten(absl::string_view text, int width);

}  // namespace traind
