// The values of test.npy files, which may be too many for memory: they are mapped, and averaged in
// parts.
#pragma once

#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>
#include <absl/types/span.h>

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "common/data/table/mapped_file.h"
#include "common/publish/second_layer.h"

namespace traind {

// The values of one file.
// Threads: safe to share.
class TestValues {
 public:
  // Opens a float32 array of any shape whose values are all finite. NotFound; DataLoss: the file
  // does not match the digest, is not such an array, or has values that are not finite.
  static absl::StatusOr<std::shared_ptr<const TestValues>> Open(const std::string& path,
                                                                absl::string_view sha256);

  absl::Span<const float> values() const { return values_; }
  // Drops values that are no longer needed from this process's memory, until they are read again.
  void Release(absl::Span<const float> part) const;

 private:
  TestValues() = default;

  std::unique_ptr<MappedFile> file_;
  absl::Span<const float> values_;
};

// The values of several files, joined.
// Threads: safe to share.
class JoinedValues {
 public:
  // parts: all of the same size, those of `join`. outputs: values of a row.
  JoinedValues(std::vector<std::shared_ptr<const TestValues>> parts, AnswerJoin join,
               size_t outputs);

  size_t size() const { return size_; }
  // out: the values from `begin` on, which is the begin of a row. Nothing of the parts stays in
  // memory.
  void Read(size_t begin, absl::Span<float> out) const;
  // Returns all of them.
  std::vector<float> Read() const;

 private:
  const std::vector<std::shared_ptr<const TestValues>> parts_;
  const AnswerJoin join_;
  const size_t outputs_;
  size_t size_ = 0;
};

}  // namespace traind
