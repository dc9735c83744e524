// The manifest.json of a prediction-<n> folder.
#pragma once

#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>

#include <string>
#include <vector>

#include "common/publish/publisher.h"

namespace traind {

struct PredictionManifest {
  std::string job;
  std::string metric;
  PublishedPrediction prediction;  // path is not stored, because it follows from job and number
  std::string floor_model;         // the floor's at the time of publishing; may be empty
  std::string floor_test_sha256;
  std::string models_from;  // the Job whose models predicted; empty: this Job
  // Usable models of trials without a weight; later answers may give them one.
  std::vector<Member> idle;
};

std::string EncodeManifest(const PredictionManifest& manifest);
// DataLoss names the key.
absl::StatusOr<PredictionManifest> ParseManifest(absl::string_view text, absl::string_view name);

// Reads the standing Prediction's manifest. NotFound: there is none yet.
absl::StatusOr<PredictionManifest> ReadStandingManifest(const std::string& state_dir,
                                                        const std::string& job);

}  // namespace traind
