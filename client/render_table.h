// Text for people: tables, and Jobs as paragraphs.
#pragma once

#include <absl/strings/string_view.h>
#include <absl/time/time.h>

#include <string>
#include <vector>

#include "proto/job.pb.h"
#include "proto/training_service.pb.h"

namespace traind {

// Columns padded to their widest cell, two blanks apart. Control characters in
// cells are shown, not obeyed; an empty cell is "-".
class TextTable {
 public:
  explicit TextTable(std::vector<std::string> header) { Add(std::move(header)); }
  void Add(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  // A line per row, each ended by a newline.
  std::string ToString() const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

// Characters of UTF-8 text: what it is wide, for the alphabets that names use.
int DisplayWidth(absl::string_view text);

// "RUNNING", in its colour.
std::string StateText(v1::JobState state, bool color);

// "0.9812": four significant digits, or "-".
std::string ScoreText(double score);

// "12:00:04", local time; with the date where it is another day than now's.
std::string ClockText(const google::protobuf::Timestamp& moment, absl::Time now,
                      absl::TimeZone zone = absl::LocalTimeZone());

absl::Time ToTime(const google::protobuf::Timestamp& moment);

// Of a terminal Job: what became of it, which folds answered, the scores, every
// Decision and where the prediction is. Several lines.
std::string JobSummary(const v1::Job& job, absl::Time now, bool color);

// JobSummary and a table of the folds.
std::string JobReport(const v1::Job& job, absl::Time now, bool color);

std::string JobTable(const v1::ListJobsReply& jobs, absl::Time now);
std::string QuotaTable(const v1::ListQuotasReply& quotas, absl::Time now);
std::string WorkerTable(const v1::ListWorkersReply& workers, absl::Time now);
std::string PlanReport(const v1::PlanReply& plan, absl::Time now);

// "B2: folds 5 -> 3 (estimate 93s of 48s)"
std::string DecisionText(const v1::Decision& decision);

}  // namespace traind
