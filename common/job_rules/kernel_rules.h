// The settings of kernel ridge regression that a fold tries, one after the other.
#pragma once

#include <vector>

namespace traind {

struct KernelSetting {
  double gamma = 1;  // in units of one over the median of the squared distances
  double alpha = 0.1;
};

// alpha, gamma: of the spec (model.kernel); 0: several are tried. The best-known pairs come first.
std::vector<KernelSetting> KernelSettings(double alpha, double gamma);

}  // namespace traind
