// A network that a user supplies as a TorchScript module.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <cstdint>
#include <memory>

#include "worker/model/networks/model_spec.h"

namespace traind {

class Model;
class Parameters;

// The module's forward takes one or both of these arguments, by name: numeric [B, N] or [B, T,
// N] float32, codes [B, K] or [B, T, K] int64. It returns [B, outputs] float32: logits, or
// standardised values.
// Parameters and float32 buffers are named module.<name> and start with the file's values.
// Other buffers stay inside the module and are not saved.
// Errors: InvalidArgument names the file and the problem: its digest differs, it is not a
// module, its signature is wrong, a parameter is not float32, or an operator could access
// files.
absl::StatusOr<std::unique_ptr<Model>> CreateScript(const ModelSpec& spec, const ModelShape& shape,
                                                    Parameters& parameters);

// Loads the module, trains it on made-up rows and predicts them, with each batch size that may
// end an epoch. Call it in a process of its own, because the module may never return.
// Errors: as above; also InvalidArgument if the module fails, returns another shape or dtype,
// or none of its parameters has a gradient.
struct ScriptReport {
  int64_t parameters = 0;  // number of trained values
};
absl::StatusOr<ScriptReport> TryScript(const plain::ScriptSpec& spec, const ModelShape& shape);

}  // namespace traind
