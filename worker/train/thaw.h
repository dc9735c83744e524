// Which layers of a network's body an epoch trains (train.freeze).
#pragma once

#include <algorithm>
#include <cstdint>

namespace traind {

// frozen_epochs: the first ones, which train none. thaw_layers: so many more with each epoch after
// them; 0: all at once. layers: of the body.
inline int64_t LayersInEpoch(int64_t epoch, int64_t frozen_epochs, int64_t thaw_layers,
                             int64_t layers) {
  if (epoch < frozen_epochs) return 0;
  if (thaw_layers == 0) return layers;
  const int64_t steps = epoch - frozen_epochs + 1;
  return steps > layers / thaw_layers ? layers : steps * thaw_layers;
}

}  // namespace traind
