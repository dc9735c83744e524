#include "worker/model/networks/model.h"

#include <absl/status/status.h>
#include <absl/strings/str_cat.h>

#include "worker/model/networks/cnn.h"
#include "worker/model/networks/lstm.h"
#include "worker/model/networks/mlp.h"
#include "worker/model/networks/script.h"
#include "worker/model/networks/text_encoder.h"
#include "worker/model/networks/transformer.h"
#include "worker/model/networks/unet3d.h"

namespace traind {
namespace {

struct Entry {
  const char* architecture;
  ModelFactory create;
};
constexpr Entry kModels[] = {
    {"mlp", CreateMlp},          {"lstm", CreateLstm}, {"transformer", CreateTransformer},
    {"text", CreateTextEncoder}, {"cnn", CreateCnn},   {"unet3d", CreateUnet3d},
};

}  // namespace

absl::StatusOr<std::unique_ptr<Model>> CreateModel(const ModelSpec& spec, const ModelShape& shape,
                                                   Parameters& parameters) {
  if (spec.architecture == "script") return CreateScript(spec, shape, parameters);
  for (const Entry& entry : kModels) {
    if (spec.architecture == entry.architecture) return entry.create(spec, shape, parameters);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("model.", spec.architecture, ": this engine has no such model"));
}

}  // namespace traind
