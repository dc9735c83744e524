// A network that a user brings: a TorchScript module.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <cstdint>
#include <memory>

#include "worker/model/networks/model_spec.h"

namespace traind {

class Model;
class Parameters;

// Its forward takes, by the names of its arguments, any of: numeric [B, N] or [B, T, N]
// float32, codes [B, K] or [B, T, K] int64; it returns [B, outputs] float32 (logits, or
// standardised values).
// Parameters start as in the file, and are module.<name>; so do float32 buffers. Others stay
// the module's own, and are not saved.
// Errors: InvalidArgument names the file and what is wrong with it: not the bytes of its
// digest, no module, another signature, parameters that are not float32, an operator that
// reaches for files.
absl::StatusOr<std::unique_ptr<Model>> CreateScript(const ModelSpec& spec, const ModelShape& shape,
                                                    Parameters& parameters);

// Loads it and lets it learn and predict made-up rows, for each size of batch that training
// may end an epoch with. To be called in a process of its own: it may never return.
// Errors: as above; InvalidArgument where it fails, gives another shape or another dtype,
// or no parameter has a gradient.
struct ScriptReport {
  int64_t parameters = 0;  // elements
};
absl::StatusOr<ScriptReport> TryScript(const plain::ScriptSpec& spec, const ModelShape& shape);

}  // namespace traind
