#include "worker/model/networks/model.h"

#include <absl/status/status.h>
#include <absl/strings/str_cat.h>

#include <string>

#include "worker/model/networks/cnn.h"
#include "worker/model/networks/lora.h"
#include "worker/model/networks/lstm.h"
#include "worker/model/networks/mlp.h"
#include "worker/model/networks/script.h"
#include "worker/model/networks/text_encoder.h"
#include "worker/model/networks/transformer.h"
#include "worker/model/networks/unet3d.h"

namespace traind {
namespace {

struct Entry {
  const char* network;  // its name in ModelSpec (proto/job.proto)
  ModelFactory create;
};
constexpr Entry kNetworks[] = {
    {"mlp", CreateMlp},          {"lstm", CreateLstm}, {"transformer", CreateTransformer},
    {"text", CreateTextEncoder}, {"cnn", CreateCnn},   {"unet3d", CreateUnet3d},
    {"script", CreateScript},
};

}  // namespace

absl::StatusOr<std::unique_ptr<Model>> CreateModel(const ModelSpec& spec, const ModelShape& shape,
                                                   Parameters& parameters) {
  const std::string network = NetworkName(spec);
  for (const Entry& entry : kNetworks) {
    if (network != entry.network) continue;
    absl::StatusOr<std::unique_ptr<Model>> model = entry.create(spec, shape, parameters);
    if (!model.ok() || !spec.lora.has_value()) return model;
    return WithLora(*std::move(model), *spec.lora, parameters);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("model.", network, ": this engine has no such model"));
}

}  // namespace traind
