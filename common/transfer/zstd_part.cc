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
// At first, until what lies between here and there is full and the link tells its speed.
constexpr absl::Duration kBegins = absl::Milliseconds(300);
constexpr absl::Duration kMeasures = absl::Milliseconds(300), kStays = absl::Seconds(10);
// Compressing leaves more of the link to others: it is given up for a clear gain alone.
constexpr double kClearly = 1.1;
constexpr unsigned long long kMostBytes = 4 << 20;

}  // namespace

struct PartPacker::Context {
  ~Context() { ZSTD_freeCCtx(zstd); }
  ZSTD_CCtx* const zstd = ZSTD_createCCtx();
  std::string frame;
};

PartPacker::PartPacker(const Clock& clock) : clock_(clock), context_(std::make_unique<Context>()) {}
PartPacker::~PartPacker() = default;

void PartPacker::NextPhase(Phase phase, bool packs, absl::Duration now) {
  phase_ = phase;
  packs_ = packs;
  phase_at_ = now;
  phase_bytes_ = 0;
}

void PartPacker::Decide(absl::Duration now, int64_t bytes) {
  const absl::Duration passed = now - phase_at_;
  const double rate = static_cast<double>(phase_bytes_) / absl::ToDoubleSeconds(passed);
  if (phase_at_ == absl::InfiniteDuration()) {
    NextPhase(Phase::kBegin, true, now);
  } else if (phase_ == Phase::kBegin && passed >= kBegins) {
    NextPhase(Phase::kMeasurePacked, true, now);
  } else if (phase_ == Phase::kMeasurePacked && passed >= kMeasures) {
    packed_rate_ = rate;
    NextPhase(Phase::kMeasurePlain, false, now);
  } else if (phase_ == Phase::kMeasurePlain && passed >= kMeasures) {
    plain_rate_ = rate;
    NextPhase(Phase::kStay, plain_rate_ <= kClearly * packed_rate_, now);
  } else if (phase_ == Phase::kStay && passed >= kStays) {
    NextPhase(Phase::kMeasurePacked, true, now);
  }
  phase_bytes_ += bytes;
}

bool PartPacker::Pack(std::string& part) {
  Decide(clock_.MonotonicNow(), static_cast<int64_t>(part.size()));
  return packs_ && Compress(part);
}

bool PartPacker::Compress(std::string& part) {
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
