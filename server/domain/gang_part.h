// Slots of one Worker on which Ranks of a gang run.
#pragma once

#include <string>
#include <vector>

namespace traind {

struct GangPart {
  std::string worker;
  std::vector<int> slots;

  friend bool operator==(const GangPart& a, const GangPart& b) {
    return a.worker == b.worker && a.slots == b.slots;
  }
};

}  // namespace traind
