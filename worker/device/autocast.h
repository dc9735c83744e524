// Automatic mixed precision: operators on a device choose the precision that they compute in.
// LibTorch's header for it is slow to compile, so only autocast.cc includes it.
// Threads: all of it applies to the calling thread.
#pragma once

#include <c10/core/DeviceType.h>
#include <c10/core/ScalarType.h>

#include "worker/device/precision.h"

namespace traind {

struct AutocastState {
  bool enabled = false;
  c10::ScalarType type = c10::ScalarType::Float;  // the half precision that is chosen
};

AutocastState CurrentAutocast(c10::DeviceType device);
void SetAutocast(c10::DeviceType device, const AutocastState& state);
// Drops the casts of weights that operators have kept.
void ForgetCasts();

// Turns autocast on while it lives, if `precision` is one that needs this.
class Autocast {
 public:
  Autocast(c10::DeviceType device, Precision precision) : device_(device) {
    enabled_ = UsesAmp(precision);
    if (!enabled_) return;
    SetAutocast(device_, {true, precision == Precision::kBf16 ? c10::ScalarType::BFloat16
                                                              : c10::ScalarType::Half});
  }
  ~Autocast() {
    if (!enabled_) return;
    SetAutocast(device_, {false, CurrentAutocast(device_).type});
    ForgetCasts();  // of weights that the step is about to change
  }
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;

 private:
  c10::DeviceType device_;
  bool enabled_;
};

}  // namespace traind
