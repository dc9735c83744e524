// Reads any bytes as the manifest of a Prediction.
#include "common/publish/prediction_manifest.h"
#include "tests/fuzz/check.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace traind;
  const auto manifest = ParseManifest(Bytes(data, size), "manifest.json");
  if (!manifest.ok()) {
    Check(absl::IsDataLoss(manifest.status()), "a damaged manifest is a loss of data");
    return 0;
  }
  const PublishedPrediction& prediction = manifest->prediction;
  Check(prediction.quality != Quality::kNone, "there is a quality");
  Check(prediction.bytes >= 0 && prediction.rows >= 0, "counts are not negative");
  for (const int fold : prediction.left_out) Check(fold >= 0, "a fold is not negative");
  for (const PredictionFile& file : prediction.files)
    Check(file.bytes >= 0, "sizes are not negative");
  const std::string written = EncodeManifest(*manifest);
  const auto again = ParseManifest(written, "manifest.json");
  Check(again.ok() && EncodeManifest(*again) == written, "a manifest survives JSON");
  return 0;
}
