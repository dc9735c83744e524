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
#include "worker/floor/volume_floor_model.h"
#include "worker/inference/commit_cost.h"
#include "worker/inference/inference_spec.h"
#include "worker/inference/row_model.h"
#include "worker/inference/rows_file.h"
#include "worker/inference/saved_values.h"
#include "worker/rank_protocol/messages.h"
#include "worker/task/event_sink.h"
#include "worker/task/inference_control.h"

namespace traind {

// Predicts a data file. The file is read once. Then one model after the other predicts all of
// it, so that complete models have answered when time is up. The values of each model are
// durable when it is done, so an Attempt after a kill continues with the next model. The
// Prediction is published when all models have answered or time is up, and now and then before.
// If no model is done when time is up, and one model is enough, the answers of the first one so
// far are published, with their mean for the other rows (FLOOR). Other voxels get the answer of the
// floor, where it is kept, even if no model has reached any.
// Sends TableReady (rows and warnings), Progress and Predicted; its caller
// sends Finished and Failed.
// Threads: Run() on one; the control may change meanwhile. Errors: FailureReason() maps each.
class DatasetPrediction {
 public:
  // The references must outlive it.
  DatasetPrediction(rank_protocol::Predict task, InferenceControl& control, EventSink& sink,
                    const Clock& clock);

  absl::Status Run();

 private:
  absl::Status FindSchema();
  absl::Status ReadRows();
  absl::Status ReadTable(const CsvFile& data, std::vector<std::string>& warnings);
  absl::Status ReadSeries(const CsvFile& data, std::vector<std::string>& warnings);
  absl::Status ReadImages(const ImageInput& images, std::vector<std::string>& warnings);
  absl::Status ReadVolumes();
  // What a mask takes besides its voxels; once a second.
  absl::Status TimeCommits();
  absl::Status ReuseEarlierValues();
  absl::Status PredictWith(int index);
  std::vector<std::unique_ptr<RowModel>> MoreInstances(const ModelChoice& choice,
                                                       const RowModel& model) const;
  absl::StatusOr<std::string> WriteValues(int index, RowModel& model);
  absl::StatusOr<std::string> WriteForecast(int index, RowModel& model);
  absl::StatusOr<std::string> WriteVoxels(int index, RowModel& model);
  absl::StatusOr<std::unique_ptr<DurableWriter>> StartValues(int index) const;
  // The number of answers that a model gives: rows, or the voxels of all volumes.
  int64_t answers() const { return volumes_ != nullptr ? volumes_->TestVoxels() : rows_; }
  // The number of values in an answer.
  int64_t values() const;
  // Ends the values of a model, with `left` answers missing, as time is up. Returns their digest.
  absl::StatusOr<std::string> EndEarly(const std::vector<double>& sums, int64_t left,
                                       DurableWriter& out);
  absl::Status AppendMeans(const std::vector<double>& sums, int64_t left, DurableWriter& out) const;
  // The answers of the floor for the last `left` voxels.
  absl::Status AppendFloor(int64_t left, DurableWriter& out) const;
  absl::Status AnswerByFloor();
  void ReadVolumeFloor();
  bool MayStandIn() const;
  absl::Status MaybePublish();
  absl::Status PublishNow();
  absl::Status TooFew() const;
  void RemoveScratch() const;

  bool TimeIsUp() const;
  bool CannotFinish(int64_t left, int64_t step) const;
  // The time at which publishing has to begin.
  absl::Duration AnswerAt() const;
  int Answered() const;
  void ReportProgress();
  // Record decisions about rows, and about models, without an answer.
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
  std::optional<ImageFields> image_;   // none: rows have no images
  std::optional<VolumeInput> volume_;  // none: rows are no volumes
  std::optional<SeriesInput> series_;  // none: rows do not depend on earlier ones
  SampleShape shape_;
  std::shared_ptr<const Table> later_;  // of a forecast: history, and the rows to be predicted
  std::string table_sha256_;
  FileIdentity data_;
  int64_t rows_ = 0;
  std::unique_ptr<RowsFile> rows_file_;
  std::shared_ptr<const VolumeSet> volumes_;         // null: rows are no volumes
  std::optional<VolumeFloorModel> volume_floor_;     // none: it is not kept
  std::vector<std::optional<MemberValues>> values_;  // [model]
  int64_t blocks_done_ = 0;
  absl::Duration step_cost_;  // duration of the last whole step
  CommitCost commit_cost_;
  int missing_ = 0;       // number of models that cannot answer
  int64_t stand_in_ = 0;  // number of answers that are the mean answer instead of a model's

  int published_ = 0;  // number of members of the last Prediction
  absl::Duration published_at_;
  absl::Duration publish_cost_;  // the longest duration so far
};

}  // namespace traind
