// Turns several models' predictions for a file into the Prediction of the Job that asked for it.
// Files may be larger than memory: everything is streamed.
#pragma once

#include <absl/status/statusor.h>
#include <absl/time/time.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/data/volume/volume_set.h"
#include "common/publish/prediction_files.h"
#include "common/publish/prediction_form.h"
#include "common/publish/publisher.h"

namespace traind {

// The predictions of one model.
struct MemberValues {
  Member member;  // fold -1: the floor; its weight in the whole ensemble
  // Absolute; NPY float32 [rows, outputs], in the file's order. For volumes [voxels, values].
  std::string path;
};

struct DatasetAnswer {
  std::string state_dir;
  std::string job;          // the Job that asked
  std::string models_from;  // the Job whose models predict
  std::string metric;
  AnswerColumns columns;
  PredictionForm form;  // format and probabilities; `ensemble` is only recorded
  int64_t rows = 0;
  // The test volumes are the rows, which are answered by masks; null: rows are no volumes.
  std::shared_ptr<const VolumeSet> volumes;
  // Absolute path of a file with each row's id as its length, a colon, and the id; empty: there is
  // no id column.
  std::string ids;
  std::vector<MemberValues> members;  // those that have predicted, in the order of the models
  int members_wanted = 0;             // number of models
  // The only member has predicted some rows; the others have a stand-in value.
  bool stand_in = false;
  // Figures of the other Job's Prediction by all its models.
  Quality quality = Quality::kNone;
  std::optional<double> oof_score;
  bool comparable = false;
  Tuned tuned;  // what the joined answer is adjusted by; the threshold stands in `columns`, too
  // Called now and then while rows are written; may be empty.
  std::function<void()> progress;
};

// Joins the members with their weights scaled to sum to 1, as `tuned` says, and publishes the
// result unless the standing Prediction has at least as many members (a stand-in counts as none).
// With fewer members than wanted the quality is DEGRADED, with a stand-in FLOOR, and no score is
// given, because the other Job's scores do not hold for them. Threads: safe; calls for the same Job
// wait for each other. Errors: those of Publish; InvalidArgument: there are no members.
absl::StatusOr<PublishedPrediction> PublishDataset(const DatasetAnswer& answer, absl::Time now);

// Makes a Prediction that PublishDataset has made in another state folder the standing one of this
// folder, unless that one has as many models. folder: absolute, with its files, in the Job's
// folder; it is gone then, or of no more use. DataLoss: its manifest is damaged;
// FailedPrecondition: the Job has ended. Threads: safe, also beside other processes.
absl::Status AdoptDataset(const std::string& state_dir, const std::string& job,
                          const std::string& folder);

}  // namespace traind
