// Initial weights of a model from a file that another program has written.
#pragma once

#include <absl/status/statusor.h>
#include <absl/types/span.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "worker/model/networks/parameter_layout.h"

namespace traind {

// The section model.pretrained of a resolved spec.
struct PretrainedSpec {
  std::string file;  // the path in the spec
  std::string sha256;
  std::map<std::string, std::string> map;  // see common/data/weights/name_map.h
  // Whether the spec also gives a tokenizer file (data.text.model_file).
  bool tokens_given = false;
  // The network of another library whose folder the file is of; empty: it is of no folder.
  std::string architecture;
};

struct PretrainedReport {
  int64_t taken = 0, parameters = 0;     // number of parameters that come from the file, and of all
  int64_t taken_values = 0, values = 0;  // number of values in them
  std::vector<std::string> kept;         // names of parameters that start at random
  std::vector<std::string> differs, unused;  // see WeightsPlan

  // The report in one line, with at most `most` items of each list.
  std::string Text(size_t most = 20) const;
  std::string Share() const;  // "18/22"
};

// Copies the weights that the spec assigns from the file at `path` into `values`, which hold a
// model's parameters in the layout's order; the others keep their values. pieces: the number of
// the tokenizer's pieces; 0: there is no tokenizer. First checks the file's digest, and that
// all numbers to be copied are finite.
// Errors: InvalidArgument names the file and everything that is wrong with it or with the map;
// those of MappedFile::Open.
absl::StatusOr<PretrainedReport> LoadPretrained(const PretrainedSpec& spec, const std::string& path,
                                                const ParameterLayout& layout, int64_t pieces,
                                                absl::Span<float> values);

}  // namespace traind
