// Finds the connected components of masks.
#pragma once

#include <absl/types/span.h>

#include <cstdint>
#include <vector>

namespace traind {

// Keeps, of each foreground class of a mask (or of some), only the largest connected component.
// Voxels of a class that share a face, an edge or a corner are connected (26 neighbours). Of
// components of equal size the one whose first voxel comes first is kept, in the order of slices,
// rows and columns. A mask comes slice by slice, and is held as runs of equal voxels: memory grows
// with the surface of the objects, not with the voxels. Threads: confined to one.
class LargestComponents {
 public:
  // classes: of foreground. chosen: [class - 1], those of which the largest component alone is
  // kept; empty: all.
  LargestComponents(int64_t height, int64_t width, int64_t classes, std::vector<bool> chosen = {});

  // labels: the next slice, [H, W], values from 0 to the number of classes.
  void Add(absl::Span<const uint8_t> labels);
  // Reads a slice of what is kept. REQUIRES: all slices were added, and slice z is one of them.
  void Read(int64_t z, absl::Span<uint8_t> labels);

 private:
  // Voxels begin..end-1 of a row.
  struct Run {
    int32_t begin = 0, end = 0;
    uint32_t component = 0;
  };
  struct Component {
    uint32_t parent = 0;  // of a union-find forest; a root is its own parent
    int64_t voxels = 0;   // of a root: those of the tree
    uint8_t label = 0;
  };

  uint32_t RootOf(uint32_t component);
  // The tree whose first voxel comes first takes in the other.
  void Unite(uint32_t a, uint32_t b);
  void AddRow(const uint8_t* labels);
  // Unites the runs of the last row with those of an earlier row that touch them.
  void Connect(int64_t earlier_row);
  void ChooseLargest();

  const int64_t height_, width_, classes_;
  const std::vector<bool> chosen_;
  std::vector<Run> runs_;
  std::vector<size_t> row_ends_;  // [row]: the end of its runs; there are height_ rows a slice
  std::vector<Component> components_;
  std::vector<int64_t> largest_;  // [class - 1]: a root, or -1; empty until the first Read
};

}  // namespace traind
