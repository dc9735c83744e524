// Predicts a file with another Job's models: from a Predict message to the Prediction in the
// Job's folder.
#pragma once

#include <absl/status/status.h>
#include <absl/time/time.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/durable_file.h"
#include "common/data/image/image_input.h"
#include "common/publish/dataset_publisher.h"
#include "worker/task/inference_control.h"
#include "worker/inference/inference_spec.h"
#include "worker/inference/rows_file.h"
#include "worker/inference/saved_values.h"
#include "worker/inference/trained_model.h"
#include "worker/rank_protocol/messages.h"
#include "worker/task/event_sink.h"

namespace traind {

// The file is read once; then one model after the other predicts all of it, so that when the
// time is up whole models have answered. Each one's values are durable when it is through:
// whoever comes after a kill goes on with the next. The Prediction is published when all
// have answered or the time is up, and before that now and then. Where not one model is
// through when the time is up, and one is enough, its rows so far are the answer (FLOOR).
// Says TableReady (rows and warnings), Progress and Predicted; Finished and Failed are its
// caller's. Threads: Run() on one; the control may change under it.
// Errors: FailureReason() names each.
class DatasetPrediction {
 public:
  // References outlive it.
  DatasetPrediction(rank_protocol::Predict task, InferenceControl& control, EventSink& sink,
                    const Clock& clock);

  absl::Status Run();

 private:
  absl::Status FindSchema();
  absl::Status ReadRows();
  absl::Status ReadTable(const CsvFile& data, std::vector<std::string>& warnings);
  absl::Status ReadImages(const ImageInput& images, std::vector<std::string>& warnings);
  absl::Status TakeEarlierValues();
  absl::Status PredictWith(int index);
  absl::StatusOr<std::string> WriteValues(int index, TrainedModel& model);
  bool MayStandIn(int64_t rows_left) const;
  absl::Status AppendMeans(const std::vector<double>& sums, int64_t rows, DurableWriter& out) const;
  absl::Status MaybePublish();
  absl::Status PublishNow();
  absl::Status TooFew() const;
  void RemoveScratch() const;

  bool TimeIsUp() const;
  bool CannotFinish(int64_t rows_left, int64_t step) const;
  // When publishing has to begin.
  absl::Duration AnswerAt() const;
  int Answered() const;
  void SayProgress();
  // Tell the user of rows, and of models, that do not answer.
  void NoteStandIn() const;
  void NoteMissing(const std::string& cause, int before, int after) const;
  std::string InAttempt(const std::string& name) const;

  const rank_protocol::Predict task_;
  InferenceControl& control_;
  EventSink& sink_;
  const Clock& clock_;
  const absl::Duration began_;

  InferenceSpec spec_;
  InputSchema schema_;
  std::optional<ImageFields> image_;  // none: rows have no images
  std::string table_sha256_;
  FileIdentity data_;
  int64_t rows_ = 0;
  std::unique_ptr<RowsFile> rows_file_;
  std::vector<std::optional<MemberValues>> values_;  // by model
  int64_t blocks_done_ = 0;
  absl::Duration step_cost_;  // of the last whole step
  int missing_ = 0;           // models that cannot answer
  int64_t stand_in_ = 0;      // rows for which no model has answered, and something stands

  int published_ = 0;  // members of the last Prediction
  absl::Duration published_at_;
  absl::Duration publish_cost_;  // the longest seen
};

}  // namespace traind
