// Turns what several models have predicted for a file into the Prediction of the Job that
// asked for it. Files may be larger than memory: everything streams.
#pragma once

#include <absl/status/statusor.h>
#include <absl/time/time.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "common/publish/prediction_files.h"
#include "common/publish/prediction_form.h"
#include "common/publish/publisher.h"

namespace traind {

// What one model answered.
struct MemberValues {
  Member member;     // fold -1: the floor; weight as in the whole ensemble
  std::string path;  // absolute; NPY float32 [rows, outputs], in the file's order
};

struct DatasetAnswer {
  std::string state_dir;
  std::string job;          // that asked
  std::string models_from;  // whose models
  std::string metric;
  AnswerColumns columns;
  PredictionForm form;  // format and probabilities; ensemble is told only
  int64_t rows = 0;
  // Absolute: each row's id as its length, a colon, and itself; empty: no id column.
  std::string ids;
  std::vector<MemberValues> members;  // in the order of the models, those that have answered
  int members_wanted = 0;             // models there are
  // The only member has answered for some of the rows, and something stands for the others.
  bool stand_in = false;
  // Of the other Job's Prediction by all its models.
  Quality quality = Quality::kNone;
  std::optional<double> oof_score;
  bool comparable = false;
  // Called now and then while rows are written; may be empty.
  std::function<void()> progress;
};

// Joins the members, with their weights scaled to sum to 1, and lets them stand unless the
// standing Prediction has as many members (a stand-in is none). Fewer members than wanted
// are DEGRADED, a stand-in is a FLOOR, and their score is not told: the other Job's does
// not hold for them.
// Threads: safe; calls for one Job wait for each other. Errors: as of Publish;
// InvalidArgument without members.
absl::StatusOr<PublishedPrediction> PublishDataset(const DatasetAnswer& answer, absl::Time now);

}  // namespace traind
