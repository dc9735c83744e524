// Reads any bytes as the file of a trained model, with the digest that its writer would have given
// them, and encodes rows by it.
#include <cmath>

#include "common/base/digest_text.h"
#include "common/base/job_layout.h"
#include "tests/fuzz/check.h"
#include "tests/fuzz/scratch.h"
#include "worker/predict/model_file.h"

namespace {

using namespace traind;

constexpr int kRows = 4;

// Rows of a file as FeatureReader leaves them: any number, and any category that the file may have.
void EncodeRows(const ModelFile& file) {
  const float numbers[kRows] = {0, 1e30f, std::nanf(""), -2};
  FeatureRows rows;
  std::vector<std::vector<int32_t>> codes;
  codes.reserve(file.input.features.size());
  for (const Column& feature : file.input.features) {
    const bool numeric = feature.kind == ColumnKind::kNumeric;
    const auto last = static_cast<int32_t>(feature.categories.size()) - 1;
    codes.push_back({kMissingCode, last, 0, last + 1});
    rows.numbers.push_back(numeric ? numbers : nullptr);
    rows.codes.push_back(numeric ? nullptr : codes.back().data());
  }
  const RowEncoder encoder(file.encoder);
  for (const EncodedRows& encoded : {encoder.Encode(rows, 0, kRows), encoder.Unknown(kRows)}) {
    const std::vector<int64_t>& bounds = encoder.cardinalities();
    for (size_t i = 0; i < encoded.codes.size(); ++i) {
      Check(encoded.codes[i] >= 0 && encoded.codes[i] < bounds[i % bounds.size()],
            "a code is one that the network knows");
    }
    for (const float value : encoded.numeric) Check(std::isfinite(value), "an input is a number");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const auto& scratch = *new Scratch;
  (void)scratch.Write(absl::StrCat("m/", kModelFile), WithDigest("model", Bytes(data, size)));
  const auto file = ReadModelFile(scratch.path(), "m");
  if (file.ok()) EncodeRows(*file);
  return 0;
}
