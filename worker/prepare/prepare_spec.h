// The part of a Job's spec that PREPARE needs.
#pragma once

#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/data/image/image_fields.h"
#include "common/data/table/folds.h"
#include "common/data/table/table.h"
#include "common/data/volume/volume_treatment.h"
#include "common/job_rules/user_program.h"
#include "common/metrics/metrics.h"
#include "common/publish/prediction_form.h"

namespace traind {

// The target of a row of volumes: the share of its mask that is foreground.
inline constexpr char kForegroundColumn[] = "foreground";

// data.volume, resolved.
struct VolumeFields {
  std::string image, mask;           // columns of the files of a row's volume and mask
  std::vector<std::string> classes;  // names of the masks' values from 1 on; empty: one foreground
  VolumeTreatment treatment;
  bool median_spacing = false;  // of the training volumes, which the treatment's spacing will be
};

struct PrepareSpec {
  TargetKind target_kind = TargetKind::kClasses;
  Metric metric;
  std::string loss;         // train.loss.kind; empty: that of the task
  bool logarithm = false;   // of the targets is learnt (train.target_transform)
  std::string train, test;  // paths; test: empty = none
  std::string target;
  std::vector<std::string> more_targets;
  std::string id;                                // empty: none
  std::string time, series, group, fold_column;  // empty: none
  std::vector<std::string> text_columns;         // of data.text
  bool tokenizer_of_folds = false;               // a file per fold has its tokenizer
  int64_t vocabulary = 0;                        // tokens to tell apart, at most
  std::string tokenizer_config;                  // of a vocab.txt; empty: the file needs none
  std::string tokenizer_file;                    // path of its model; empty: each fold learns one
  bool text_features = true;                     // of columns with many different texts
  bool forecasting = false;
  std::optional<VolumeFields> volume;
  SplitSpec split;
  PredictionForm form;
  std::optional<ImageFields> image;     // none: rows have none
  std::string script, script_sha256;    // a user's own model; empty: none
  std::string weights, weights_sha256;  // to start from (model.pretrained); empty: none
  std::optional<UserProgram> program;   // that trains the folds; none: traind does
  std::string scratch;                  // not of the spec: a folder for scratch files
};

// Reads a resolved JobSpec as JSON with snake_case keys; the seed may be a number or
// its decimal text. InvalidArgument names the field.
absl::StatusOr<PrepareSpec> ParsePrepareSpec(absl::string_view json);

}  // namespace traind
