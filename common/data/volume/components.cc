#include "common/data/volume/components.h"

#include <algorithm>
#include <utility>

namespace traind {

LargestComponents::LargestComponents(int64_t height, int64_t width, int64_t classes,
                                     std::vector<bool> chosen)
    : height_(height), width_(width), classes_(classes), chosen_(std::move(chosen)) {}

uint32_t LargestComponents::RootOf(uint32_t component) {
  while (components_[component].parent != component) {
    uint32_t& parent = components_[component].parent;
    parent = components_[parent].parent;
    component = parent;
  }
  return component;
}

void LargestComponents::Unite(uint32_t a, uint32_t b) {
  a = RootOf(a);
  b = RootOf(b);
  if (a == b) return;
  if (b < a) std::swap(a, b);  // components are numbered in the order of their first voxels
  components_[b].parent = a;
  components_[a].voxels += components_[b].voxels;
}

void LargestComponents::Connect(int64_t earlier_row) {
  const auto row = static_cast<size_t>(earlier_row);
  size_t at = row == 0 ? 0 : row_ends_[row - 1];
  const size_t end = row_ends_[row];
  for (size_t i = row_ends_.back(); i < runs_.size(); ++i) {
    const Run& run = runs_[i];
    const uint8_t label = components_[run.component].label;
    while (at < end && runs_[at].end < run.begin)
      ++at;  // a run that ends where one begins touches it
    for (size_t k = at; k < end && runs_[k].begin <= run.end; ++k) {
      if (components_[runs_[k].component].label == label) Unite(run.component, runs_[k].component);
    }
  }
}

void LargestComponents::AddRow(const uint8_t* labels) {
  for (int64_t x = 0; x < width_;) {
    const int64_t begin = x;
    while (x < width_ && labels[x] == labels[begin]) ++x;
    if (labels[begin] == 0) continue;
    const auto component = static_cast<uint32_t>(components_.size());
    components_.push_back({component, x - begin, labels[begin]});
    runs_.push_back({static_cast<int32_t>(begin), static_cast<int32_t>(x), component});
  }
}

void LargestComponents::Add(absl::Span<const uint8_t> labels) {
  for (int64_t y = 0; y < height_; ++y) {
    const auto row = static_cast<int64_t>(row_ends_.size());
    AddRow(labels.data() + y * width_);
    if (row > 0) {
      if (y > 0) Connect(row - 1);
      for (int64_t beside = std::max<int64_t>(0, y - 1);
           row >= height_ && beside <= std::min(height_ - 1, y + 1); ++beside) {
        Connect(row - y - height_ + beside);
      }
    }
    row_ends_.push_back(runs_.size());
  }
}

void LargestComponents::ChooseLargest() {
  largest_.assign(static_cast<size_t>(classes_), -1);
  for (size_t i = 0; i < components_.size(); ++i) {
    const Component& component = components_[i];
    if (component.parent != i) continue;
    int64_t& largest = largest_[component.label - 1u];
    if (largest < 0 || component.voxels > components_[static_cast<size_t>(largest)].voxels) {
      largest = static_cast<int64_t>(i);
    }
  }
}

void LargestComponents::Read(int64_t z, absl::Span<uint8_t> labels) {
  if (largest_.empty()) ChooseLargest();
  std::fill(labels.begin(), labels.end(), uint8_t{0});
  for (int64_t y = 0; y < height_; ++y) {
    const auto row = static_cast<size_t>(z * height_ + y);
    for (size_t i = row == 0 ? 0 : row_ends_[row - 1]; i < row_ends_[row]; ++i) {
      const uint32_t root = RootOf(runs_[i].component);
      const uint8_t label = components_[root].label;
      const bool chosen = chosen_.empty() || chosen_[label - 1u];
      if (chosen && largest_[label - 1u] != static_cast<int64_t>(root)) continue;
      std::fill_n(labels.begin() + y * width_ + runs_[i].begin, runs_[i].end - runs_[i].begin,
                  label);
    }
  }
}

}  // namespace traind
