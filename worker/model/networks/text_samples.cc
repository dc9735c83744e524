#include "worker/model/networks/text_samples.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>

#include <algorithm>

#include "worker/device/upload.h"

namespace traind {

TextSamples TextSamplesOf(const Inputs& inputs) {
  TextSamples samples;
  const at::Tensor ends = inputs.ends.to(at::kCPU, at::kLong).contiguous();
  const auto* data = ends.const_data_ptr<int64_t>();
  samples.ends.assign(data, data + ends.numel());
  at::Tensor sample_of_token = at::empty({inputs.tokens.size(0)}, at::kLong);
  at::Tensor place = at::empty_like(sample_of_token);
  at::Tensor share = at::empty({ends.numel(), 1}, at::kFloat);
  at::Tensor first = at::empty({ends.numel()}, at::kLong);
  int64_t begin = 0;
  for (int64_t b = 0; b < ends.numel(); ++b) {
    for (int64_t i = begin; i < data[b]; ++i) {
      sample_of_token.mutable_data_ptr<int64_t>()[i] = b;
      place.mutable_data_ptr<int64_t>()[i] = i - begin;
    }
    first.mutable_data_ptr<int64_t>()[b] = begin;
    share.mutable_data_ptr<float>()[b] =
        1.0f / static_cast<float>(std::max<int64_t>(1, data[b] - begin));
    begin = data[b];
  }
  const c10::Device device = inputs.tokens.device();
  samples.sample_of_token = Upload(sample_of_token, device);
  samples.place = Upload(place, device);
  samples.first = Upload(first, device);
  samples.share = Upload(share, device);
  return samples;
}

}  // namespace traind
