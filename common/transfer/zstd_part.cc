#include "common/transfer/zstd_part.h"

#include <absl/status/status.h>
#include <absl/strings/str_cat.h>
#include <zstd.h>

#include <algorithm>

namespace traind {
namespace {

// The fastest of zstd's usual levels: a link of 1 Gbit/s must not wait for it.
constexpr int kLevel = 1;
constexpr int kMostPassed = 63;
constexpr unsigned long long kMostBytes = 4 << 20;

}  // namespace

struct PartPacker::Context {
  ~Context() { ZSTD_freeCCtx(zstd); }
  ZSTD_CCtx* const zstd = ZSTD_createCCtx();
  std::string frame;
};

PartPacker::PartPacker() : context_(std::make_unique<Context>()) {}
PartPacker::~PartPacker() = default;

bool PartPacker::Pack(std::string& part) {
  if (part.empty() || context_->zstd == nullptr) return false;
  if (passed_ > 0) {
    --passed_;
    return false;
  }
  std::string& frame = context_->frame;
  // A frame that does not fit saves too little.
  frame.resize(part.size() - part.size() / 8);
  const size_t bytes = ZSTD_compressCCtx(context_->zstd, frame.data(), frame.size(), part.data(),
                                         part.size(), kLevel);
  if (ZSTD_isError(bytes) != 0) {
    passed_ = pass_ = std::min(2 * pass_ + 1, kMostPassed);
    return false;
  }
  frame.resize(bytes);
  part.swap(frame);
  pass_ = 0;
  return true;
}

absl::StatusOr<std::string> UnpackPart(absl::string_view frame) {
  const absl::Status wrong = absl::InvalidArgumentError("a part is no zstd frame");
  const unsigned long long bytes = ZSTD_getFrameContentSize(frame.data(), frame.size());
  if (bytes == ZSTD_CONTENTSIZE_ERROR || bytes == ZSTD_CONTENTSIZE_UNKNOWN) return wrong;
  if (bytes > kMostBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("a part has ", bytes, " bytes, and at most ", kMostBytes, " may come"));
  }
  std::string part(static_cast<size_t>(bytes), '\0');
  const size_t got = ZSTD_decompress(part.data(), part.size(), frame.data(), frame.size());
  if (ZSTD_isError(got) != 0 || got != part.size()) return wrong;
  return part;
}

}  // namespace traind
