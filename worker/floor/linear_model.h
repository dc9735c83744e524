// A linear model, fitted by L-BFGS: logistic, softmax or ridge regression.
#pragma once

#include <absl/types/span.h>

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

namespace traind {

// Inputs of a linear model: numbers, sparse 0/1 indicators (switches) of categories and missing
// values, and the sparse values of words.
struct DesignRows {
  static constexpr int32_t kOff = -1;

  size_t rows = 0;
  size_t numbers = 0;         // per row
  size_t places = 0;          // maximum number of switches that are on, per row
  std::vector<float> values;  // [rows, numbers]
  std::vector<int32_t> on;    // [rows, places]: the index of a switch that is on, or kOff
  // Where each row's words end in the two lists; empty: rows have no words.
  std::vector<size_t> word_ends;
  std::vector<uint32_t> words;
  std::vector<float> word_values;
};

enum class Link {
  kLogistic,  // one output: the log odds of class 1
  kSoftmax,   // one output for each class
  kIdentity,  // one output: the value
};

struct FitOptions {
  double l2 = 1;  // penalty on all weights but the biases; the loss is summed over rows
  int iterations = 40;
  double flat = 1e-5;          // ends the fit: the norm of the gradient, relative to the first one
  std::function<bool()> stop;  // asked at each step; true ends the fit with the current weights
};

// Threads: confined to one.
class LinearModel {
 public:
  LinearModel(Link link, size_t numbers, size_t switches, size_t words, size_t outputs);

  // Fits the weights. targets: one per row; for kLogistic and kSoftmax the class.
  void Fit(const DesignRows& rows, absl::Span<const float> targets, const FitOptions& options);

  // out: float32 [rows, width()], probabilities (kLogistic: of both classes) or values.
  void Predict(const DesignRows& rows, absl::Span<float> out) const;
  size_t width() const { return link_ == Link::kLogistic ? 2 : outputs_; }

  // [outputs, 1 + numbers + switches + words]: of each output the bias comes first.
  const std::vector<float>& weights() const { return weights_; }
  // REQUIRES: as many as weights() has.
  void SetWeights(std::vector<float> weights) { weights_ = std::move(weights); }

 private:
  void Outputs(const std::vector<float>& weights, const DesignRows& rows, size_t row,
               float* out) const;
  double Loss(const std::vector<float>& weights, const DesignRows& rows,
              absl::Span<const float> targets, double l2, std::vector<float>& gradient) const;
  double RowLoss(float* outputs, float target) const;

  void AddGradient(const DesignRows& rows, size_t row, float slope, float* gradient) const;

  Link link_;
  size_t numbers_;
  size_t words_at_;  // index of the first word's weight
  size_t stride_;    // weights of an output: bias, numbers, switches, words
  size_t outputs_;
  std::vector<float> weights_;  // [outputs, stride]
};

}  // namespace traind
