// What all networks over images have in common: the row's other columns, and a head.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "worker/model/networks/input_columns.h"
#include "worker/model/networks/model.h"
#include "worker/model/networks/model_spec.h"
#include "worker/model/networks/parameters.h"
#include "worker/model/networks/recompute.h"

namespace traind {

// The body makes a vector of an image; the head is linear in it beside the row's other columns.
// Parameters: those of InputColumns, then the body's, then the head's.
class ImageNetwork : public BodyModel {
 public:
  bool SetRecompute(bool on) override {
    recompute_ = on;
    return true;
  }
  int64_t body_width() const override { return body_width_; }
  // Outside of training the mean over the views of the image that the spec asks for: the head is
  // linear, so it is the mean of the answers.
  at::Tensor Body(const std::vector<at::Tensor>& weights, const Inputs& inputs,
                  bool training) const override;
  at::Tensor Head(const std::vector<at::Tensor>& weights, const Inputs& inputs,
                  const at::Tensor& body, bool training) const override;

 protected:
  ImageNetwork(const plain::CnnSpec& spec, const ModelShape& shape, Parameters& parameters);

  // The last that is declared: <name>.weight and <name>.bias.
  void DeclareHead(const std::string& name, int64_t body_width, int64_t outputs,
                   Parameters& parameters);

  struct Pass {
    bool training = false;
    uint64_t seed = 0;        // of the pass's dropout
    int64_t fixed_below = 0;  // as in Inputs

    // That of a layer, by its depth.
    Pass Of(int64_t depth) const { return {training && depth >= fixed_below, seed, fixed_below}; }
  };
  // Returns [B, body_width()]. image: [B, C, H, W].
  virtual at::Tensor Pooled(const std::vector<at::Tensor>& weights, const at::Tensor& image,
                            const Pass& pass) const = 0;
  // With activation checkpointing only what parts return is kept. used: the part's weights.
  at::Tensor Run(const Part& part, const std::vector<at::Tensor>& weights,
                 const std::vector<size_t>& used, const at::Tensor& x, const Pass& pass) const;
  // Stochastic depth (Huang and others 2016): leaves `branch` out for some samples of a batch in
  // training, and scales it for the others, so that the mean is kept. block counts from 0.
  at::Tensor DropPath(const at::Tensor& branch, size_t block, size_t blocks, size_t branch_of_block,
                      const Pass& pass) const;

 private:
  const InputColumns columns_;
  // Calls `take` with each view of the image.
  template <class Take>
  void EachView(const at::Tensor& image, const Take& take) const;

  const double dropout_, drop_path_;
  const bool mirror_;
  const double view_shift_;
  const std::vector<double> view_scales_;
  const int64_t multiple_;  // of the sides of images
  bool recompute_ = false;
  int64_t body_width_ = 0;
  LinearParameters head_;
};

}  // namespace traind
