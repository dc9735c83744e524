// The form in which a Job wants its answer; PREPARE stores it in the Job's folder.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <string>
#include <vector>

#include "common/publish/ensemble.h"
#include "proto/plain/job.h"

namespace traind {

enum class FileFormat { kCsv, kNpy, kZip };

struct PredictionForm {
  EnsembleKind ensemble = EnsembleKind::kMean;
  FileFormat format = FileFormat::kCsv;
  bool probabilities = true;           // as columns of predictions.csv
  std::string masks = {};              // for volumes: as the spec has it; empty: see MaskFormOf
  std::vector<double> quantiles = {};  // levels of the columns of quantiles, ascending

  bool plain() const {
    return ensemble == EnsembleKind::kMean && format == FileFormat::kCsv && probabilities &&
           masks.empty() && quantiles.empty();
  }
};

// `predictions` of a resolved spec.
PredictionForm FormOf(const plain::PredictionsSpec& spec);

// "csv", "npy", "zip"; kCsv where it is none of them.
FileFormat FileFormatByName(const std::string& name);

// Writes the form durably. A plain form is not written.
absl::Status WritePredictionForm(const std::string& state_dir, const std::string& job,
                                 const PredictionForm& form);
// Returns the plain form if none was written. DataLoss: the file is damaged.
absl::StatusOr<PredictionForm> ReadPredictionForm(const std::string& state_dir,
                                                  const std::string& job);

}  // namespace traind
