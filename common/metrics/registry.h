// The metrics that there are, by the names of registry.inc.
#pragma once

#include "common/metrics/metric.h"

namespace traind {

#define METRIC(Name) extern const MetricKind k##Name##Metric;
#include "common/metrics/registry.inc"
#undef METRIC

}  // namespace traind
