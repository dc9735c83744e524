// The values of test.npy files, which may be too many to be held: mapped, and averaged in parts.
#pragma once

#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>
#include <absl/types/span.h>

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "common/data/table/mapped_file.h"

namespace traind {

// Threads: safe to share.
class TestValues {
 public:
  // A float32 array of any shape, all of whose values are finite. NotFound; DataLoss: it is
  // another file than the digest's, no such array, or not finite.
  static absl::StatusOr<std::shared_ptr<const TestValues>> Open(const std::string& path,
                                                                absl::string_view sha256);

  absl::Span<const float> values() const { return values_; }
  // Values that one is done with: they leave this process's memory, until they are read again.
  void Release(absl::Span<const float> part) const;

 private:
  TestValues() = default;

  std::unique_ptr<MappedFile> file_;
  absl::Span<const float> values_;
};

// Several files' values together, value by value.
class JoinedValues {
 public:
  // parts: of one size. weights: one for each; they sum to 1.
  JoinedValues(std::vector<std::shared_ptr<const TestValues>> parts, std::vector<double> weights);

  size_t size() const { return size_; }
  // out: the values from `begin` on (Blend of common/publish/ensemble.h). Nothing of the parts
  // stays in memory.
  void Read(size_t begin, absl::Span<float> out) const;
  // All of them.
  std::vector<float> Read() const;

 private:
  const std::vector<std::shared_ptr<const TestValues>> parts_;
  const std::vector<double> weights_;
  size_t size_ = 0;
};

}  // namespace traind
