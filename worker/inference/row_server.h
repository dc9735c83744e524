// Answers requests for rows with another Job's models, which stay loaded.
#pragma once

#include <absl/status/status.h>
#include <absl/time/time.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/publish/second_layer.h"
#include "worker/inference/inference_spec.h"
#include "worker/inference/row_model.h"
#include "worker/rank_protocol/messages.h"
#include "worker/task/event_sink.h"
#include "worker/task/inference_control.h"

namespace traind {

// Serves requests. All waiting requests are predicted as one batch. A request with a bad row is
// refused; the others are answered. Ends after the idle time of the spec, or on Stop. Sends
// Serving, Answered and, once a second, Progress.
// Threads: Run() on one; the control may change meanwhile. Errors: FailureReason() maps each.
class RowServer {
 public:
  // The references must outlive it.
  RowServer(rank_protocol::Serve task, InferenceControl& control, EventSink& sink,
            const Clock& clock);
  ~RowServer();

  absl::Status Run();

 private:
  struct Batch;

  absl::Status LoadModels();
  void AnswerAll(std::vector<rank_protocol::Rows> requests);
  absl::Status ReadRows(const rank_protocol::Rows& request, Batch& batch);
  absl::StatusOr<const FeatureReader*> ReaderFor(const std::vector<std::string>& columns);
  absl::Status PredictBatch(const Batch& batch, std::vector<float>& values);
  // Sends the rows in as many messages as their size asks for.
  void SendAnswer(const rank_protocol::Rows& request, absl::Span<const float> values);
  rank_protocol::Answered MakeAnswer(const rank_protocol::Rows& request,
                                     absl::Span<const float> values) const;
  void Refuse(const rank_protocol::Rows& request, const absl::Status& why);

  const rank_protocol::Serve task_;
  InferenceControl& control_;
  EventSink& sink_;
  const Clock& clock_;

  InferenceSpec spec_;
  InputSchema schema_;
  std::vector<std::unique_ptr<RowModel>> models_;
  std::vector<double> weights_;
  AnswerJoin join_;
  std::string members_;  // JSON
  Quality quality_ = Quality::kNone;
  std::map<std::vector<std::string>, std::unique_ptr<FeatureReader>> readers_;
};

}  // namespace traind
