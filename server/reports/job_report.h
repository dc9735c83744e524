// Reports to users how a Job's Plan and its time were used.
// Threads: safe, pure.
#pragma once

#include <absl/time/time.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "server/domain/job.h"

namespace traind {

struct MoreTime {
  absl::Duration time;
  std::string buys;  // "2 more folds, 8 more epochs each"
  // The metric's mean over the folds with enough measurements, or the answer's score; nullopt if
  // there are none.
  std::optional<double> now, low, expected, high;
};

// A point of the curve of score against time spent.
struct AnswerAt {
  double at_s = 0;  // since the Job's time began
  Answer answer;
};

// How much a column is worth to the models that answer: a mean by their weights. Where none of
// those has told, to the last model of each fold that has.
struct ColumnImportance {
  std::string column;
  double drop = 0;  // mean over the folds: how much worse the metric gets without it
  std::optional<double> error = {};  // standard error of the mean; nullopt: of one fold
  int folds = 0;
};

struct JobReport {
  int folds_asked = 0, folds_planned = 0, folds_done = 0, folds_partial = 0, folds_reused = 0;
  int models_asked = 0, models_trained = 0;
  double epochs_asked = 0, epochs_planned = 0;
  double epochs_done = 0;  // mean over the trained folds
  double queue_s = 0;      // wall clock, to the first Attempt
  // Seconds of Attempts; train_s is what the other phases leave.
  double prepare_s = 0, probe_s = 0, train_s = 0, validate_s = 0, predict_s = 0;
  double device_s = 0;  // slots x seconds
  // The share of slot time that went into its tasks, of the slots that the Job could use from
  // acceptance to the reserve; nullopt without a deadline, and before the Job has ended.
  std::optional<double> used_share;
  int revisions = 0;  // of the Plan, the first one not counted
  // Measured on the folds' Attempts. 0 and nullopt: none was measured.
  std::optional<double> utilisation;  // mean over their time
  int64_t peak_memory_bytes = 0, peak_device_bytes = 0;
  std::optional<double> energy_joules;
  std::optional<double> epoch_device_s, epoch_joules;  // of an epoch of a fold
  std::vector<std::string> cuts;
  std::vector<AnswerAt> answers;             // one after the other
  std::vector<ColumnImportance> importance;  // the most important column first
  std::optional<MoreTime> more;
};

// What is stored of a Job besides itself.
struct JobHistory {
  std::vector<MetricPoint> metrics;  // only val_metric and kImportanceMetric are used; may be empty
  std::vector<Answer> answers;       // by number; may be empty
};

JobReport ReportOf(const Job& job, const JobHistory& history, absl::Time now);

}  // namespace traind
