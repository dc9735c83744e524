#include "worker/model/networks/batch_norm.h"

#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/batch_norm.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/instance_norm.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>
#include <vector>

#include "worker/model/kernels/norm_loops.h"
#include "worker/model/networks/custom_gradient.h"

namespace traind {
namespace {

// Each part of this many rows is added up in float32. The sums of the parts are added up in
// float64 in a fixed order, so the result does not depend on the number of threads.
constexpr int64_t kPartRows = 2048;

// x as rows of channels. If there are few channels, a row holds several pixels side by side,
// because loops over short rows are not vectorised.
struct Matrix {
  explicit Matrix(const at::Tensor& x)
      : channels(x.size(1)), width(channels), rows(x.numel() / channels) {
    constexpr int64_t kLeastWidth = 32;
    while (width < kLeastWidth && rows % 2 == 0) {
      width *= 2;
      rows /= 2;
    }
  }

  // Repeats [channels] values for each pixel of a row: [width].
  std::vector<float> Tiled(const float* values) const {
    std::vector<float> tiled;
    while (static_cast<int64_t>(tiled.size()) < width) {
      tiled.insert(tiled.end(), values, values + channels);
    }
    return tiled;
  }

  int64_t channels, width, rows;
};

bool HasChannelsLast(const at::Tensor& x) {
  return x.dim() == 5   ? x.is_contiguous(at::MemoryFormat::ChannelsLast3d)
         : x.dim() == 4 ? x.is_contiguous(at::MemoryFormat::ChannelsLast)
                        : false;
}

// Calls work(first row, number of rows, sums [2 x width]) for each part. Returns the total of
// the parts' sums, [2 x channels].
std::vector<double> SumParts(const Matrix& m,
                             const std::function<void(int64_t, int64_t, float*)>& work) {
  const int64_t parts = (m.rows + kPartRows - 1) / kPartRows;
  const auto size = static_cast<size_t>(2 * m.width);
  std::vector<float> sums(static_cast<size_t>(parts) * size);
  at::parallel_for(0, parts, 1, [&](int64_t begin, int64_t end) {
    for (int64_t part = begin; part < end; ++part) {
      const int64_t row = part * kPartRows;
      work(row, std::min(kPartRows, m.rows - row), sums.data() + static_cast<size_t>(part) * size);
    }
  });
  const auto width = static_cast<size_t>(m.width), channels = static_cast<size_t>(m.channels);
  std::vector<double> total(2 * channels);
  for (size_t i = 0; i < sums.size(); ++i) {
    total[i % size / width * channels + i % width % channels] += sums[i];
  }
  return total;
}

// Calls work(first row, number of rows) for parts of all rows.
void ForParts(const Matrix& m, const std::function<void(int64_t, int64_t)>& work) {
  at::parallel_for(0, m.rows, kPartRows,
                   [&](int64_t begin, int64_t end) { work(begin, end - begin); });
}

// A pointer to the given row of a tensor with 4 or 5 dimensions.
template <class T>
T* Rows(const at::Tensor& x, int64_t row, int64_t width) {
  return static_cast<T*>(x.data_ptr()) + row * width;
}

// Statistics per channel, [4, C]: factor and offset of x, mean, and 1 / standard deviation.
enum { kFactor, kOffset, kMean, kInverse, kStatistics };

template <class T>
void Forward(const BatchNorm& norm, const at::Tensor& x, const at::Tensor& add, bool relu,
             const at::Tensor& statistics, const at::Tensor& y) {
  const Matrix m(x);
  float* const values = statistics.mutable_data_ptr<float>();
  // Shifting by a value near the mean keeps the squares precise.
  std::vector<float> shift(static_cast<size_t>(m.channels));
  for (size_t j = 0; j < shift.size(); ++j) shift[j] = Load(Rows<T>(x, 0, m.width)[j]);
  const std::vector<float> shifts = m.Tiled(shift.data());
  const std::vector<double> sums = SumParts(m, [&](int64_t row, int64_t rows, float* part) {
    NormSums(Rows<T>(x, row, m.width), shifts.data(), part, rows, m.width);
  });
  const auto count = static_cast<double>(x.numel() / m.channels);
  const bool keeps_running = norm.running_mean.defined();
  float* const running_mean = keeps_running ? norm.running_mean.mutable_data_ptr<float>() : nullptr;
  float* const running_var = keeps_running ? norm.running_var.mutable_data_ptr<float>() : nullptr;
  for (int64_t j = 0; j < m.channels; ++j) {
    const double from_shift = sums[static_cast<size_t>(j)] / count;
    const double square = sums[static_cast<size_t>(m.channels + j)] / count;
    const double variance = std::max(0.0, square - from_shift * from_shift);
    const double mean = shift[static_cast<size_t>(j)] + from_shift,
                 inverse = 1 / std::sqrt(variance + BatchNorm::kEps);
    const double factor = norm.weight.const_data_ptr<float>()[j] * inverse;
    values[kFactor * m.channels + j] = static_cast<float>(factor);
    values[kOffset * m.channels + j] =
        static_cast<float>(norm.bias.const_data_ptr<float>()[j] - mean * factor);
    values[kMean * m.channels + j] = static_cast<float>(mean);
    values[kInverse * m.channels + j] = static_cast<float>(inverse);
    if (!keeps_running) continue;
    const auto mix = [](float old, double now) {
      return static_cast<float>((1 - BatchNorm::kMomentum) * old + BatchNorm::kMomentum * now);
    };
    running_mean[j] = mix(running_mean[j], mean);
    running_var[j] = mix(running_var[j], variance * count / (count - 1));
  }
  const std::vector<float> factors = m.Tiled(values + kFactor * m.channels),
                           offsets = m.Tiled(values + kOffset * m.channels);
  ForParts(m, [&](int64_t row, int64_t rows) {
    const NormPass<T> pass{Rows<T>(x, row, m.width),
                           add.defined() ? Rows<T>(add, row, m.width) : nullptr, factors.data(),
                           offsets.data(), relu};
    NormForward(pass, Rows<T>(y, row, m.width), rows, m.width);
  });
}

// y and d_add are undefined if nothing was added.
template <class T>
void Backward(const at::Tensor& x, const at::Tensor& y, bool relu, const at::Tensor& statistics,
              const at::Tensor& dy, const at::Tensor& d_add, const at::Tensor& dx,
              const at::Tensor& d_weight, const at::Tensor& d_bias) {
  const Matrix m(x);
  const float* const values = statistics.const_data_ptr<float>();
  const std::vector<float> factors = m.Tiled(values + kFactor * m.channels),
                           offsets = m.Tiled(values + kOffset * m.channels),
                           means = m.Tiled(values + kMean * m.channels);
  const bool added = d_add.defined();
  const auto pass_at = [&](int64_t row) {
    NormPass<T> pass;
    pass.x = Rows<T>(x, row, m.width);
    pass.add = added ? pass.x : nullptr;  // any pointer that is not null; it is not read
    pass.factor = factors.data();
    pass.offset = offsets.data();
    pass.relu = relu;
    return pass;
  };
  const std::vector<double> sums = SumParts(m, [&](int64_t row, int64_t rows, float* part) {
    NormBackwardSums(pass_at(row), added ? Rows<T>(y, row, m.width) : nullptr,
                     Rows<T>(dy, row, m.width), means.data(),
                     added ? Rows<T>(d_add, row, m.width) : nullptr, part, rows, m.width);
  });
  std::vector<float> slope(static_cast<size_t>(m.channels)), constant(slope.size());
  const auto count = static_cast<double>(x.numel() / m.channels);
  for (int64_t j = 0; j < m.channels; ++j) {
    const double mean = values[kMean * m.channels + j], inverse = values[kInverse * m.channels + j];
    const double factor = values[kFactor * m.channels + j];
    const auto at = static_cast<size_t>(j);
    const double d_offset = sums[at],
                 d_factor = sums[static_cast<size_t>(m.channels) + at] * inverse;
    d_bias.mutable_data_ptr<float>()[j] = static_cast<float>(d_offset);
    d_weight.mutable_data_ptr<float>()[j] = static_cast<float>(d_factor);
    const double by_x = factor * inverse * d_factor / count;
    slope[at] = static_cast<float>(-by_x);
    constant[at] = static_cast<float>(by_x * mean - factor * d_offset / count);
  }
  const std::vector<float> slopes = m.Tiled(slope.data()), constants = m.Tiled(constant.data());
  ForParts(m, [&](int64_t row, int64_t rows) {
    NormBackward(pass_at(row), Rows<T>(added ? d_add : dy, row, m.width), slopes.data(),
                 constants.data(), Rows<T>(dx, row, m.width), rows, m.width);
  });
}

// What is normalised together: the whole batch, or each sample by itself.
struct Groups {
  Groups(const at::Tensor& x, bool each_sample) : count(each_sample ? x.size(0) : 1) {}
  at::Tensor Of(const at::Tensor& all, int64_t group) const {
    return count == 1 || !all.defined() ? all : all.narrow(0, group, 1);
  }

  int64_t count;
};

// REQUIRES: x is in channels-last order, with more than one value per channel unless there are no
// running statistics.
// saved: x, the statistics [groups, 4, C], and the result where the backward pass reads it.
at::Tensor NormForward(const BatchNorm& norm, const Groups& groups, const at::Tensor& x,
                       const at::Tensor& add, bool relu, Tensors& saved) {
  const at::Tensor y = at::empty_like(x);
  const at::Tensor statistics =
      at::empty({groups.count, kStatistics, x.size(1)}, norm.weight.options());
  for (int64_t g = 0; g < groups.count; ++g) {
    const auto run = x.scalar_type() == at::kBFloat16 ? Forward<Bf16> : Forward<float>;
    run(norm, groups.Of(x, g), groups.Of(add, g), relu, statistics[g], groups.Of(y, g));
  }
  const bool needs_y = add.defined() && relu;
  saved = {x, statistics, needs_y ? y : at::Tensor()};
  return y;
}

// Returns the gradients of x, weight, bias and, if something was added, of that.
Tensors NormGradients(const Tensors& saved, const Groups& groups, const at::Tensor& gradient,
                      bool added, bool relu) {
  const at::Tensor &x = saved[0], &statistics = saved[1];
  const at::Tensor& y = saved[2].defined() ? saved[2] : x;
  const at::Tensor dy = gradient.to(x.scalar_type()).contiguous(x.suggest_memory_format());
  const at::Tensor dx = at::empty_like(x);
  const at::Tensor d_add = added ? at::empty_like(x) : at::Tensor();
  const at::Tensor d_weight = at::empty({groups.count, x.size(1)}, statistics.options());
  const at::Tensor d_bias = at::empty_like(d_weight);
  for (int64_t g = 0; g < groups.count; ++g) {
    const auto run = x.scalar_type() == at::kBFloat16 ? Backward<Bf16> : Backward<float>;
    run(groups.Of(x, g), groups.Of(y, g), relu, statistics[g], groups.Of(dy, g),
        groups.Of(d_add, g), groups.Of(dx, g), d_weight[g], d_bias[g]);
  }
  Tensors all = {dx, groups.count == 1 ? d_weight[0] : d_weight.sum(0),
                 groups.count == 1 ? d_bias[0] : d_bias.sum(0)};
  if (added) all.push_back(d_add);
  return all;
}

at::Tensor NormInLoops(const BatchNorm& norm, const Groups& groups, const at::Tensor& x,
                       const at::Tensor& add, bool relu) {
  const bool added = add.defined();
  Tensors inputs = {x, norm.weight, norm.bias};
  if (added) inputs.push_back(add);
  CustomGradient function;
  function.forward = [norm, groups, added, relu](const Tensors& given, Tensors& saved) {
    const BatchNorm own{given[1], given[2], norm.running_mean, norm.running_var};
    return NormForward(own, groups, given[0], added ? given[3] : at::Tensor(), relu, saved);
  };
  function.backward = [groups, added, relu](const Tensors& saved, const at::Tensor& gradient,
                                            const std::vector<bool>&) {
    return NormGradients(saved, groups, gradient, added, relu);
  };
  return Apply(std::move(function), inputs);
}

bool FitsLoops(const at::Tensor& x) {
  const bool known = x.scalar_type() == at::kFloat || x.scalar_type() == at::kBFloat16;
  return known && x.is_cpu() && HasChannelsLast(x);
}

}  // namespace

at::Tensor NormAddAct(const BatchNorm& norm, const at::Tensor& x, const at::Tensor& add, bool relu,
                      bool training, bool loops) {
  const bool has_statistics = training && x.numel() > x.size(1);
  const bool alike =
      !add.defined() || (add.scalar_type() == x.scalar_type() && HasChannelsLast(add));
  if (loops && has_statistics && alike && FitsLoops(x)) {
    return NormInLoops(norm, Groups(x, /*each_sample=*/false), x, add, relu);
  }
  at::Tensor y =
      at::batch_norm(x, norm.weight, norm.bias, norm.running_mean, norm.running_var, has_statistics,
                     BatchNorm::kMomentum, BatchNorm::kEps, /*cudnn_enabled=*/true);
  if (add.defined()) y = y.add_(add);
  return relu ? at::relu_(y) : y;
}

at::Tensor InstanceNormAct(const at::Tensor& weight, const at::Tensor& bias, const at::Tensor& x,
                           bool relu, bool loops) {
  if (loops && x.numel() > 0 && FitsLoops(x)) {
    const BatchNorm norm{weight, bias, at::Tensor(), at::Tensor()};
    return NormInLoops(norm, Groups(x, /*each_sample=*/true), x, at::Tensor(), relu);
  }
  // Of no samples batch_norm gives no values, too, and gradients of zero.
  at::Tensor y = x.numel() > 0
                     ? at::instance_norm(x, weight, bias, {}, {}, /*use_input_stats=*/true,
                                         BatchNorm::kMomentum, BatchNorm::kEps,
                                         /*cudnn_enabled=*/true)
                     : at::batch_norm(x, weight, bias, at::zeros_like(bias), at::ones_like(bias),
                                      /*training=*/false, BatchNorm::kMomentum, BatchNorm::kEps,
                                      /*cudnn_enabled=*/true);
  return relu ? at::relu_(y) : y;
}

}  // namespace traind
