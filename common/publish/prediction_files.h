// Writes the files of a Prediction and makes it the standing one.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>
#include <absl/types/span.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/base/durable_file.h"
#include "common/data/table/table.h"
#include "common/publish/prediction_form.h"
#include "common/publish/prediction_manifest.h"
#include "common/publish/quantiles.h"

namespace traind {

// The columns of a Prediction.
struct AnswerColumns {
  std::string id;  // name of the id column; empty: rows are numbered from 0
  std::vector<std::string> targets;
  std::vector<std::string> classes;      // empty: the values are not probabilities of classes
  std::optional<double> threshold = {};  // of the second of two classes (tuned.h)
  Quantiles quantiles = {};              // of values; with levels, columns <target>_q<level>
  std::vector<int32_t> steps = {};       // of a forecast: how many rows ahead each row is

  size_t outputs() const { return classes.empty() ? targets.size() : classes.size(); }
  int StepOf(size_t row) const { return steps.empty() ? 0 : steps[row]; }
};
AnswerColumns AnswerColumnsOf(const TableSchema& schema);
// The names of the columns of quantiles, [targets, levels].
std::vector<std::string> QuantileNames(const AnswerColumns& columns);

// Writes a Prediction's files row by row into a folder beside the standing one. REQUIRES: the Job's
// publish lock is held from Begin to Commit.
// Threads: confined to one. Errors: those of WriteFileDurably, after which the written files are
// removed.
class PredictionWriter {
 public:
  static absl::StatusOr<std::unique_ptr<PredictionWriter>> Begin(const std::string& state_dir,
                                                                 const std::string& job,
                                                                 const AnswerColumns& columns,
                                                                 const PredictionForm& form,
                                                                 int64_t rows);
  ~PredictionWriter();

  // Appends the next row of the file. id: ignored if there is no id column. values: [outputs].
  // step: how many rows ahead a forecast is; else 0.
  absl::Status Add(absl::string_view id, absl::Span<const float> values, int step = 0);
  // Absolute path of the files until Commit.
  const std::string& folder() const { return dir_; }
  // Names of files in folder() that Commit packs with predictions.csv into predictions.zip.
  void PackWith(std::vector<std::string> names) { packed_ = std::move(names); }
  // Completes prediction-<n>/ after `rows` rows and switches `current` to it. Sets number, path,
  // digests and sizes of the manifest's prediction. REQUIRES: the Job's publish lock is held.
  // FailedPrecondition: the Job has ended meanwhile; what stood stands.
  absl::Status Commit(PredictionManifest& manifest);

 private:
  PredictionWriter() = default;
  void AddText(absl::string_view id, absl::Span<const float> values, int step);
  absl::Status WriteZipFile(const std::vector<std::string>& names, PredictionManifest& manifest);

  std::string state_dir_, job_, dir_;
  AnswerColumns columns_;
  PredictionForm form_;
  int64_t rows_ = 0;
  int64_t row_ = 0;
  std::string line_;
  std::vector<std::string> labels_;  // of the classes, quoted
  std::vector<double> quantiles_;    // of the row
  std::unique_ptr<DurableWriter> csv_, npy_;
  std::vector<std::string> packed_;
};

// Makes a folder with a Prediction's files prediction-<n>/, writes its manifest, and switches
// `current` to it. Sets number and path of the manifest's prediction. dir: absolute, in the Job's
// folder; it is gone then. REQUIRES: the Job's publish lock is held. FailedPrecondition: the Job
// has ended meanwhile; what stood stands.
absl::Status MakeStanding(const std::string& state_dir, const std::string& job,
                          const std::string& dir, PredictionManifest& manifest);

// Makes `current` point to prediction-<number>. REQUIRES: the Job's publish lock is held.
absl::Status SwitchCurrent(const std::string& state_dir, const std::string& job, int number);

}  // namespace traind
