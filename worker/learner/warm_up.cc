#include <ATen/Parallel.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "common/base/status_macros.h"
#include "worker/device/guard.h"
#include "worker/learner/learner.h"

namespace traind {

void SetTorchThreads(int threads) { at::set_num_threads(std::max(1, threads)); }

absl::Status WarmUpTorch(const CudaApi* cuda) {
  // Operators never run beside each other here. This call fails, harmlessly, in a process that
  // has already run some.
  Guarded([] {
    at::set_num_interop_threads(1);
    return absl::OkStatus();
  }).IgnoreError();
  // One run per kind of loss, with sizes that reach the blocked kernels.
  for (const bool classification : {true, false}) {
    constexpr int64_t kRows = 64;
    LearnerOptions options;
    options.objective.loss = classification ? LossKind::kCrossEntropy : LossKind::kMse;
    options.model.mlp.emplace().hidden = {64, 64};
    options.shape.numeric = 16;
    options.shape.cardinalities = {4};
    options.shape.outputs = classification ? 3 : 1;
    options.cuda = cuda;
    options.paths.handwritten_backward = classification;  // the other run warms up autograd
    LearnerData data;
    data.rows.rows = kRows;
    data.rows.numeric.assign(kRows * 16, 0.5f);
    data.rows.codes.assign(kRows, 2);
    if (classification) {
      data.classes.assign(kRows, 1);
    } else {
      data.values.assign(kRows, 1.0f);
    }
    ASSIGN_OR_RETURN(const auto learner, Learner::Create(options, std::move(data)));
    std::vector<int32_t> rows(kRows);
    for (size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<int32_t>(i);
    RETURN_IF_ERROR(learner->SetOrder(rows));
    for (int i = 0; i < 2; ++i) RETURN_IF_ERROR(learner->Step({0, kRows, kRows, 1e-3, 1}));
    RETURN_IF_ERROR(learner->ConsumeLoss().status());
    std::vector<float> out(static_cast<size_t>(kRows * options.shape.outputs));
    RETURN_IF_ERROR(learner->Predict(Weights::kBest, rows, absl::MakeSpan(out)));
  }
  return absl::OkStatus();
}

}  // namespace traind
