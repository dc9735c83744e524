// Text for people: tables, and Jobs as paragraphs.
#pragma once

#include <absl/strings/string_view.h>
#include <absl/time/time.h>

#include <optional>
#include <string>
#include <vector>

#include "proto/job.pb.h"
#include "proto/training_service.pb.h"

namespace traind {

// Whether programs of users trained the models that answer; these predict no later files.
bool ProgramsAnswer(const v1::Job& job);

// Whether traind keeps what the Job's program leaves, so that fetch copies it.
bool KeepsResults(const v1::Job& job);

// A table whose columns are padded to their widest cell, with two blanks between them. Control
// characters in cells are escaped; an empty cell is "-".
// Threads: confined to one.
class TextTable {
 public:
  explicit TextTable(const std::vector<std::string>& header) { Add(header); }
  void Add(const std::vector<std::string>& cells);
  // Returns a line for each row, each ended by a newline.
  std::string ToString() const;

 private:
  std::vector<std::vector<std::string>> rows_;  // as they are shown
  std::vector<int> widths_;                     // of the columns
};

// Returns the number of characters of UTF-8 text, which is its width in the alphabets that names
// use.
int DisplayWidth(absl::string_view text);

// Returns "RUNNING" and the like, in its colour.
std::string StateText(v1::JobState state, bool color);

// Returns "0.9812", with four significant digits, or "-".
std::string ScoreText(double score);

// Returns "12:00:04" in local time, with the date if it is another day than now's.
std::string ClockText(const google::protobuf::Timestamp& moment, absl::Time now,
                      absl::TimeZone zone = absl::LocalTimeZone());

absl::Time ToTime(const google::protobuf::Timestamp& moment);
// The moment from which the Job's time counts.
absl::Time ClockStart(const v1::Job& job);

struct JobStyle {
  bool color = false;
  bool verbose = false;  // Decisions and cuts with their arithmetic
  // The Job's, with all defaults filled in; unset: there is no advice on time that is left.
  std::optional<v1::JobSpec> spec;
};

// Returns a line with the Job's id, state, quality and end, without a newline.
std::string JobLine(const v1::Job& job, bool color);

// Describes a terminal Job in several lines: its end, the folds of its prediction, the scores,
// every Decision and where the prediction is.
std::string JobSummary(const v1::Job& job, absl::Time now, const JobStyle& style);

// Returns JobSummary, where there are several trials their leaderboard, and a table of the folds.
std::string JobReport(const v1::Job& job, absl::Time now, const JobStyle& style);

// The list of Jobs.
// Threads: confined to one.
class JobTable {
 public:
  // wide: with the columns that most readers need not.
  JobTable(absl::Time now, bool wide);
  void Add(const v1::Job& job);
  std::string ToString() const { return table_.ToString(); }

 private:
  const absl::Time now_;
  const bool wide_;
  TextTable table_;
};

std::string QuotaTable(const v1::ListQuotasReply& quotas, absl::Time now);
std::string WorkerTable(const v1::ListWorkersReply& workers, absl::Time now, bool wide);
std::string PlanReport(const v1::PlanReply& plan, absl::Time now);

// Returns "B2: folds 5 -> 3, to fit the time"; verbose: "B2: folds 5 -> 3 (estimate 93s of 48s)".
std::string DecisionText(const v1::Decision& decision, bool verbose);

}  // namespace traind
