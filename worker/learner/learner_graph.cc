// A Learner's steps as CUDA graphs: one launch per step.
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <c10/util/Exception.h>

#include "common/base/status_macros.h"
#include "worker/learner/learner_impl.h"

namespace traind {
namespace {

// Steps of a shape before it is recorded. By then kernels are chosen, and moments and
// averages are allocated.
constexpr int64_t kStepsBefore = 3;

}  // namespace

// A step that is all of an optimizer step, of a learner that trains alone, on rows that are on the
// device. Blocks that are recomputed put the generator where it stood, which a recording cannot.
// A recording also repeats what the host computed when it was made, but that differs from step to
// step: the sum of class weights, the shares of mixup and cutmix, the lengths of texts, and the
// rows that a fixed body has not seen.
bool Learner::Impl::MayRecord(const StepInput& input) const {
  return options.paths.cuda_graph && device.is_cuda() && options.group == nullptr &&
         !HasTexts(options.shape) && !rows->on_host() && row_weights.empty() &&
         options.mixup == 0 && options.cutmix == 0 && !frozen && !graph_failed && !recompute &&
         model->MayBeRecorded() && input.last && !gradient_began && input.rows > 0 &&
         input.rows == input.gang_rows;
}

int64_t Learner::steps_before_pace() const {
  StepInput whole;
  whole.rows = whole.gang_rows = 1;
  return impl_->MayRecord(whole) ? kStepsBefore + 1 : 1;
}

void Learner::Impl::DropGraph() {
  graph.reset();
  graph_media = {};
  graph_rows = 0;
  steps_of.clear();
}

// Returns false if this step has to run operator by operator.
absl::StatusOr<bool> Learner::Impl::GraphStep(const StepInput& input) {
  if (!MayRecord(input) || (graph != nullptr && input.rows < graph_rows)) return false;
  if (graph != nullptr && input.rows > graph_rows)
    DropGraph();  // the batch's buffers may move, too
  if (graph == nullptr && ++steps_of[input.rows] <= kStepsBefore) return false;
  const at::NoGradGuard no_gradients;
  const at::Tensor index = order.narrow(0, input.begin, input.rows);
  MediaTensors of_rows;
  if (media_loader != nullptr) {
    ASSIGN_OR_RETURN(of_rows, NextMedia(input));
  }
  if (graph == nullptr) {
    graph_rows = input.rows;
    graph_index = index.clone();
    if (of_rows.image.defined()) graph_media.image = of_rows.image.clone();
    if (of_rows.target.defined()) graph_media.target = of_rows.target.clone();
    graph_rate = at::empty({}, parameters.flat().options());
    optimizer->SetRateTensor(graph_rate);
    try {
      absl::Status taken;
      graph = options.cuda->Record([&] {
        const at::AutoGradMode with_gradients(true);
        taken = AutogradStep(input, graph_index, graph_media);
      });
      RETURN_IF_ERROR(taken);
    } catch (const c10::Error&) {
      graph_failed = true;  // this model cannot be recorded, so it is not tried again
      for (const at::Tensor& parameter : parameters.trained_tensors())
        parameter.mutable_grad().reset();
    }
    optimizer->SetRateTensor({});
    if (graph == nullptr) return false;
  }
  graph_index.copy_(index);
  if (graph_media.image.defined()) graph_media.image.copy_(of_rows.image);
  if (graph_media.target.defined()) graph_media.target.copy_(of_rows.target);
  graph_rate.fill_(input.learning_rate);
  graph->Launch();
  ++graph_launches;
  return true;
}

}  // namespace traind
