// Weights that a model starts with, from a file that another program has written.
#pragma once

#include <absl/status/statusor.h>
#include <absl/types/span.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "worker/model/networks/parameter_layout.h"

namespace traind {

// model.pretrained of a resolved spec.
struct PretrainedSpec {
  std::string file;  // as the spec names it
  std::string sha256;
  std::map<std::string, std::string> map;  // see common/data/weights/name_map.h
  // The tokenizer is a file that the spec gives, too (data.text.model_file).
  bool tokens_given = false;
};

struct PretrainedReport {
  int64_t taken = 0, parameters = 0;         // of the model's parameters
  int64_t taken_values = 0, values = 0;      // numbers in them
  std::vector<std::string> kept;             // parameters that start at random
  std::vector<std::string> differs, unused;  // as WeightsPlan's

  // In one line, with at most so many of each list.
  std::string Text(size_t most = 20) const;
  std::string Share() const;  // "18/22"
};

// Puts what the spec takes of the file at `path` into `values`, which are a model's in the
// layout's order; the others stay. pieces: of the tokenizer; 0: there is none. The file's
// digest is checked first, and every number of it that is taken to be finite.
// Errors: InvalidArgument names the file and what is wrong with it or with the map, all of it;
// those of MappedFile::Open.
absl::StatusOr<PretrainedReport> TakePretrained(const PretrainedSpec& spec, const std::string& path,
                                                const ParameterLayout& layout, int64_t pieces,
                                                absl::Span<float> values);

}  // namespace traind
