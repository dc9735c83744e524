#include "worker/model/static_backward.h"

#include "worker/model/static_lstm.h"
#include "worker/model/static_mlp.h"
#include "worker/model/static_text.h"
#include "worker/model/static_transformer.h"

namespace traind {

std::unique_ptr<StaticBackward> CreateStaticBackward(const StaticSetup& setup) {
  if (setup.precision != Precision::kFp32 && setup.precision != Precision::kBf16) return nullptr;
  if (setup.model.architecture == "mlp") return CreateStaticMlp(setup);
  if (setup.model.architecture == "lstm") return CreateStaticLstm(setup);
  if (setup.model.architecture == "transformer") return CreateStaticTransformer(setup);
  if (setup.model.architecture == "text") return CreateStaticText(setup);
  return nullptr;
}

}  // namespace traind
