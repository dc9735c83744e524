// The values that describe a Prediction: models' files, quality, scores. No I/O.
#pragma once

#include <absl/strings/string_view.h>
#include <absl/time/time.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/publish/quantiles.h"
#include "common/publish/tuned.h"
#include "proto/plain/job_enums.h"

namespace traind {

using plain::Quality;                           // of proto/job.proto
std::string QualityName(Quality quality);       // "", FLOOR, DEGRADED, FULL
Quality QualityByName(absl::string_view name);  // kNone for any other name

// The predictions of one model of a fold, as files in the Job's folder.
struct Member {
  int fold = 0;
  int64_t attempt = 0;
  bool complete = false;  // reached the Plan's epochs, or stopped by patience
  double score = 0;       // the Job's metric on the fold's validation rows
  double epochs_done = 0;
  std::string oof, oof_sha256;  // float32 [rows of the fold, C], path relative to the job's folder
  std::string test, test_sha256;  // float32 [test_rows, C]; empty without test rows
  // The epoch and optimizer step of the weights that predicted; 0: unknown.
  double best_epoch = 0;
  int64_t step = 0;
  double weight = 0;  // in the ensemble, set by Publish; 0: none, or not recorded
  // The setting of the model (Spec::trials), and the number among the fold's models with it.
  int trial = 0;
  int seed = 0;
  std::string kind;  // of model: mlp, lightgbm, ...; empty: unknown
};

// A model besides its fold's first: of another trial or another seed. The fold is complete without
// it. model: whatever has a trial and a seed.
template <class T>
bool IsExtra(const T& model) {
  return model.trial > 0 || model.seed > 0;
}

// A model of a fold that does not answer, because the fold's own rows score worse with it.
struct WorseModel {
  int fold = 0, trial = 0, seed = 0;
  double with = 0, without = 0;  // the score of the fold's answer

  friend bool operator==(const WorseModel& a, const WorseModel& b) {
    return a.fold == b.fold && a.trial == b.trial && a.seed == b.seed && a.with == b.with &&
           a.without == b.without;
  }
};

// A file of a Prediction besides predictions.csv.
struct PredictionFile {
  std::string name;
  std::string sha256;
  int64_t bytes = 0;
};

// The input of Publish (publisher.h).
struct PublishRequest {
  std::string state_dir;
  std::string job;
  std::string table;      // relative to state_dir
  std::string metric;     // accuracy, logloss, auc, f1, rmse, mae, r2, smape
  int spec_folds = 0;     // folds that the spec asks for
  bool plan_cut = false;  // the Plan has fewer folds or epochs than the spec
  std::vector<Member> members;
};

struct PublishedPrediction {
  int number = 0;    // 0: nothing to publish (no test rows), scores only
  std::string path;  // predictions.csv, relative to state_dir
  std::string sha256;
  int64_t bytes = 0;
  int64_t rows = 0;
  Quality quality = Quality::kNone;
  std::vector<Member> members;        // the models that answered; empty: the floor alone
  double floor_weight = 0;            // the floor's weight beside them; 1 if there are none
  std::string ensemble;               // mean, weighted, greedy; empty: unknown
  std::vector<PredictionFile> files;  // without predictions.csv
  Tuned tuned;                        // what the members' joined answer is adjusted by
  Quantiles quantiles;                // of the joined answer, where levels are wanted
  // Of these quantiles: on the rows that chose them, and on the test rows. The store keeps them and
  // the levels, the manifest keeps all.
  QuantileScores quantile_scores, test_quantile_scores;
  std::vector<int> left_out;  // folds that score below the floor;
                              // complete ones still count for quality
  // Why models do not answer. Known only where Publish has just judged them; not stored.
  std::optional<double> left_out_score;  // of the folds left out, on their rows together
  std::optional<double> left_out_floor;  // the floor's on the same rows
  std::vector<WorseModel> worse;
  // Where a second layer joins the trials: the score out of fold that weights alone would have.
  std::optional<double> weighed_score;
  std::optional<double> oof_score;    // over the rows that the members cover
  bool comparable = false;            // oof_score covers all folds of the spec
  std::optional<double> test_score;   // if the test file has the target
  std::optional<double> floor_score;  // the floor's, out of fold, over all rows
  absl::Time at;
  bool changed = false;  // false: the standing one is as good and stays
};

}  // namespace traind
