// How a Job wants its answer, as PREPARE leaves it in the Job's folder.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <string>

#include "common/publish/ensemble.h"
#include "proto/plain/job.h"

namespace traind {

enum class FileFormat { kCsv, kNpy, kZip };

struct PredictionForm {
  EnsembleKind ensemble = EnsembleKind::kMean;
  FileFormat format = FileFormat::kCsv;
  bool probabilities = true;  // columns of predictions.csv
  bool tiff_masks = false;    // of volumes: TIFF, else NPY

  bool plain() const {
    return ensemble == EnsembleKind::kMean && format == FileFormat::kCsv && probabilities &&
           !tiff_masks;
  }
};

// `predictions` of a resolved spec.
PredictionForm FormOf(const plain::PredictionsSpec& spec);

// "csv", "npy", "zip"; kCsv where it is none of them.
FileFormat FileFormatByName(const std::string& name);

// Writes durably. Nothing is written where the form is plain.
absl::Status WritePredictionForm(const std::string& state_dir, const std::string& job,
                                 const PredictionForm& form);
// Plain where nothing was written. DataLoss.
absl::StatusOr<PredictionForm> ReadPredictionForm(const std::string& state_dir,
                                                  const std::string& job);

}  // namespace traind
