// The downhill simplex method of Nelder and Mead (1965).
#pragma once

#include <functional>
#include <vector>

namespace traind {

struct Minimum {
  std::vector<double> at;
  double value = 0;
};

// Looks for a local minimum of `function` from `start` on; the first simplex has `steps` as its
// edges. Calls the function about `most_calls` times at most, and ends when the simplex's values
// differ by less than 1e-8 of their size. Points outside of the function's domain have the value
// infinity. REQUIRES: start is inside.
Minimum Minimise(const std::function<double(const std::vector<double>&)>& function,
                 const std::vector<double>& start, const std::vector<double>& steps,
                 int most_calls);

}  // namespace traind
