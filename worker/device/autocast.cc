#include "worker/device/autocast.h"

#include <ATen/autocast_mode.h>

namespace traind {

AutocastState CurrentAutocast(c10::DeviceType device) {
  return {at::autocast::is_autocast_enabled(device), at::autocast::get_autocast_dtype(device)};
}

void SetAutocast(c10::DeviceType device, const AutocastState& state) {
  at::autocast::set_autocast_enabled(device, state.enabled);
  at::autocast::set_autocast_dtype(device, state.type);
}

void ForgetCasts() { at::autocast::clear_cache(); }

}  // namespace traind
