#include "worker/model/handwritten/handwritten_backward.h"

#include "worker/model/handwritten/handwritten_lstm.h"
#include "worker/model/handwritten/handwritten_mlp.h"
#include "worker/model/handwritten/handwritten_text.h"
#include "worker/model/handwritten/handwritten_transformer.h"

namespace traind {

std::unique_ptr<HandwrittenBackward> CreateHandwrittenBackward(const HandwrittenSetup& setup) {
  if (setup.precision != Precision::kFp32 && setup.precision != Precision::kBf16) return nullptr;
  if (setup.model.architecture == "mlp") return CreateHandwrittenMlp(setup);
  if (setup.model.architecture == "lstm") return CreateHandwrittenLstm(setup);
  if (setup.model.architecture == "transformer") return CreateHandwrittenTransformer(setup);
  if (setup.model.architecture == "text") return CreateHandwrittenText(setup);
  return nullptr;
}

}  // namespace traind
