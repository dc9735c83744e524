// A trained network.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <absl/types/span.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/data/text/tokenizer.h"
#include "worker/inference/trained_model.h"
#include "worker/learner/learner.h"

namespace traind {

// Threads: confined to one. Errors: those of its Learner.
class NetworkModel final : public TrainedModel {
 public:
  // file: of the folder. Errors: as TrainedModel::Load.
  static absl::StatusOr<std::unique_ptr<TrainedModel>> Load(const std::string& state_dir,
                                                            const std::string& dir, ModelFile file);

  absl::Status Predict(const LaterRows& rows, int64_t begin, int64_t end,
                       absl::Span<float> out) override;
  int64_t InstanceBytes() const override;
  void AnswerFewRows() override { learner_->AnswerIn(Precision::kFp32); }
  absl::StatusOr<std::vector<float>> Forecast(std::shared_ptr<const Table> later) override;
  absl::Status PredictVolumes(std::shared_ptr<const VolumeSet> volumes, const TakeValues& take,
                              const std::function<absl::Status()>& between) override;

 private:
  explicit NetworkModel(ModelFile file) : TrainedModel(std::move(file)) {}
  absl::Status CreateLearner(const std::string& state_dir);
  absl::Status LoadWeights(const std::string& state_dir, const std::string& dir);

  std::unique_ptr<const Tokenizer> tokenizer_;  // null: rows have no texts
  int64_t max_tokens_ = 0;
  std::string architecture_, optimizer_;
  std::unique_ptr<Learner> learner_;
  Smearing smearing_;
};

}  // namespace traind
