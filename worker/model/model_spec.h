// What a model is to be, as the job's spec says it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace traind {

struct ModelSpec {
  std::string architecture = "mlp";
  std::vector<int64_t> hidden{256, 256};  // width of each hidden layer
  double dropout = 0.1;                   // after each hidden layer, 0-1
};

// What goes in and comes out. Numeric and categorical inputs are of each time step.
struct ModelShape {
  int64_t numeric = 0;                 // columns of the numeric input
  std::vector<int64_t> cardinalities;  // of each categorical input
  int64_t outputs = 1;                 // classes, or numbers to predict
  int64_t window = 1;                  // time steps of a sample; 1: a plain row
};

}  // namespace traind
