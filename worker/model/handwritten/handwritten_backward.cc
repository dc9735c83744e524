#include "worker/model/handwritten/handwritten_backward.h"

#include "worker/model/handwritten/handwritten_lstm.h"
#include "worker/model/handwritten/handwritten_mlp.h"
#include "worker/model/handwritten/handwritten_text.h"
#include "worker/model/handwritten/handwritten_transformer.h"

namespace traind {

std::unique_ptr<HandwrittenBackward> CreateHandwrittenBackward(const HandwrittenSetup& setup) {
  if (setup.precision != Precision::kFp32 && setup.precision != Precision::kBf16) return nullptr;
  for (const auto create : {CreateHandwrittenMlp, CreateHandwrittenLstm,
                            CreateHandwrittenTransformer, CreateHandwrittenText}) {
    if (auto pass = create(setup)) return pass;
  }
  return nullptr;
}

}  // namespace traind
