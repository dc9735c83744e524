// What turns a row into a fold's model's input, and its output into an answer: model.json,
// beside the checkpoints that have the model's weights. With both a later file is predicted
// exactly as the fold's own rows were, without the training file or its cache.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <cstdint>
#include <string>

#include "common/data/image/image_fields.h"
#include "common/data/table/feature_reader.h"
#include "worker/data/image_pixels.h"
#include "worker/data/row_encoder.h"

namespace traind {

struct ModelFile {
  std::string job;
  int fold = 0;
  uint64_t seed = 0;
  std::string table_sha256;  // of the table that it was trained on
  std::string spec_json;     // resolved JobSpec
  InputSchema input;
  RowEncoder::State encoder;
  std::string tokenizer;   // Tokenizer::Serialize()'s; empty: rows have no texts
  PixelScale pixel_scale;  // [channels] of the images; empty: rows have none
  // Filled in by reading, from the spec: which images they are.
  ImageFields image;
};

// dir: of the Attempt, relative to the state folder; it exists. Durable. Errors: those of
// WriteFileDurably.
absl::Status WriteModelFile(const std::string& state_dir, const std::string& dir,
                            const ModelFile& file);

// NotFound; DataLoss: damaged, says what is wrong; FailedPrecondition: an older engine's, without
// what predicting images needs.
absl::StatusOr<ModelFile> ReadModelFile(const std::string& state_dir, const std::string& dir);

}  // namespace traind
