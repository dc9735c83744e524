#include "common/publish/test_values.h"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "common/base/durable_file.h"
#include "common/base/status_macros.h"
#include "common/data/table/npy.h"
#include "common/publish/ensemble.h"

namespace traind {
namespace {

constexpr size_t kAtOnce = 1 << 18;

}  // namespace

absl::StatusOr<std::shared_ptr<const TestValues>> TestValues::Open(const std::string& path,
                                                                   absl::string_view sha256) {
  ASSIGN_OR_RETURN(const FileDigest digest, DigestFile(path));
  if (digest.sha256 != sha256) return absl::DataLossError(absl::StrCat(path, " is damaged"));
  const std::shared_ptr<TestValues> values(new TestValues());
  ASSIGN_OR_RETURN(values->file_, MappedFile::Open(path, MapUse::kStream));
  const absl::string_view bytes = values->file_->bytes();
  ASSIGN_OR_RETURN(const NpyHeader header, ParseNpyHeader(bytes, path));
  ASSIGN_OR_RETURN(const uint64_t count,
                   CountNpyValues(header, bytes.size() - header.data_begin, sizeof(float), path));
  if (header.dtype != "<f4" || header.fortran_order || header.data_begin % alignof(float) != 0) {
    return absl::DataLossError(absl::StrCat(path, " is not an array of float32"));
  }
  values->values_ = {reinterpret_cast<const float*>(bytes.data() + header.data_begin), count};
  for (size_t at = 0; at < count; at += kAtOnce) {
    const auto part = values->values_.subspan(at, kAtOnce);
    if (!std::all_of(part.begin(), part.end(), [](float x) { return std::isfinite(x); })) {
      return absl::DataLossError(absl::StrCat(path, " has values that are not finite"));
    }
    values->Release(part);
  }
  return std::shared_ptr<const TestValues>(values);
}

void TestValues::Release(absl::Span<const float> part) const {
  file_->Release({reinterpret_cast<const char*>(part.data()), part.size() * sizeof(float)});
}

JoinedValues::JoinedValues(std::vector<std::shared_ptr<const TestValues>> parts, AnswerJoin join,
                           size_t outputs)
    : parts_(std::move(parts)),
      join_(std::move(join)),
      outputs_(outputs),
      size_(parts_.empty() ? 0 : parts_[0]->values().size()) {}

void JoinedValues::Read(size_t begin, absl::Span<float> out) const {
  const size_t at_once = std::max<size_t>(1, kAtOnce / outputs_) * outputs_;  // whole rows
  for (size_t at = 0; at < out.size(); at += at_once) {
    const auto to = out.subspan(at, at_once);
    std::vector<absl::Span<const float>> spans;
    for (const auto& part : parts_) {
      spans.push_back(part->values().subspan(begin + at, to.size()));
    }
    join_.Join(spans, outputs_, to);
    for (size_t k = 0; k < parts_.size(); ++k) parts_[k]->Release(spans[k]);
  }
}

std::vector<float> JoinedValues::Read() const {
  std::vector<float> values(size_);
  Read(0, absl::MakeSpan(values));
  return values;
}

}  // namespace traind
