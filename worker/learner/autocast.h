#pragma once

#include <ATen/autocast_mode.h>

#include "worker/device/precision.h"

namespace traind {

// While it lives, the device's operators choose their own precision (automatic mixed
// precision), if `precision` is one that needs this.
// Threads: applies to the thread that creates it.
class Autocast {
 public:
  Autocast(c10::DeviceType device, Precision precision) : device_(device) {
    enabled_ = precision == Precision::kBf16 || precision == Precision::kFp16;
    if (!enabled_) return;
    at::autocast::set_autocast_dtype(device_,
                                     precision == Precision::kBf16 ? at::kBFloat16 : at::kHalf);
    at::autocast::set_autocast_enabled(device_, true);
  }
  ~Autocast() {
    if (!enabled_) return;
    at::autocast::set_autocast_enabled(device_, false);
    at::autocast::clear_cache();  // casts of weights, which the step is about to change
  }
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;

 private:
  c10::DeviceType device_;
  bool enabled_;
};

}  // namespace traind
