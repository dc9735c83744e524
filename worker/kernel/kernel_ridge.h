// Kernel ridge regression with a Gaussian kernel: answers(x) = mean + sum_i k(x, x_i) c_i, where
// k(x, z) = exp(-gamma |x - z|^2) and c solves (K + alpha I) c = targets - mean (Saunders,
// Gammerman and Vovk 1998). What a row's answer would be without it follows from the same solution
// (Rasmussen and Williams 2006, section 5.4.2).
#pragma once

#include <absl/status/statusor.h>
#include <absl/types/span.h>

#include <cstdint>
#include <vector>

namespace traind {

// float32, row by row.
struct KernelRows {
  int64_t rows = 0;
  int64_t width = 0;
  std::vector<float> values;  // [rows, width]
};

struct KernelFit {
  double gamma = 1;
  double temperature = 1;            // of classes: probabilities are softmax(temperature x values)
  std::vector<double> coefficients;  // [rows, outputs]
};

// What is learnt from. Threads: immutable.
struct KernelTask {
  KernelRows rows;
  int outputs = 1;
  bool classes = false;         // targets are 0 and 1, one of each row's is 1
  std::vector<double> targets;  // [rows, outputs]
  std::vector<double> mean;     // [outputs], of the targets
  // [outputs], above 0: how much the loss of a class counts. Probabilities are multiplied by them,
  // which is what the least weighted cross-entropy asks for. Empty: all alike.
  std::vector<double> class_weights;
};

// Returns the median of the squared distances of different rows, over at most 2^18 pairs; 1 if all
// are alike.
double MedianSquaredDistance(const KernelRows& rows);

// The time grows with the cube of the rows; 8 bytes for each pair of rows are held meanwhile.
// leave_one_out: gets the answers [rows, outputs] of each row by a model without it, in the units
// of the targets, with the same mean; may be null.
// Errors: Internal: the matrix has no Cholesky factors, alpha is too small.
absl::StatusOr<KernelFit> FitKernel(const KernelTask& task, double gamma, double alpha,
                                    std::vector<double>* leave_one_out = nullptr);

// out: [x.rows, outputs], probabilities for classes.
void PredictKernel(const KernelTask& task, const KernelFit& fit, const KernelRows& x,
                   absl::Span<float> out);

// values: [rows, outputs], answers before softmax. Returns the temperature for which softmax of
// them has the least cross-entropy.
double BestTemperature(absl::Span<const double> values, const KernelTask& task);

}  // namespace traind
