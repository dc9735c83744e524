// Parts of files as zstd frames (RFC 8878), where that makes them smaller. Each part is a frame of
// its own, so a transfer may begin at any byte of the file.
#pragma once

#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>
#include <absl/time/time.h>

#include <cstdint>
#include <memory>
#include <string>

#include "common/base/clock.h"

namespace traind {

// Compresses the parts of one file, one after the other, as long as that is the faster way: on a
// fast link compression may take longer than the bytes that it saves. So now and then it tries the
// other way for a moment, by the time from part to part, and goes on with the faster one.
// Threads: confined to one.
class PartPacker {
 public:
  // Ownership: the clock outlives it.
  explicit PartPacker(const Clock& clock = SystemClock());
  ~PartPacker();
  PartPacker(const PartPacker&) = delete;
  PartPacker& operator=(const PartPacker&) = delete;

  // To be called with each part, right before it is sent. Replaces the part by its frame, and
  // returns true, where that saves at least an eighth. After parts that do not become so small it
  // looks at fewer of the next ones, down to every 64th.
  bool Pack(std::string& part);

 private:
  enum class Phase { kBegin, kMeasurePacked, kMeasurePlain, kStay };
  struct Context;
  void NextPhase(Phase phase, bool packs, absl::Duration now);
  // Counts the part before, and decides what is done with this one.
  void Decide(absl::Duration now, int64_t bytes);
  bool Compress(std::string& part);

  const Clock& clock_;
  const std::unique_ptr<Context> context_;
  int passed_ = 0;  // parts that it does not look at before the next one
  int pass_ = 0;    // so many after the next one that does not become smaller

  Phase phase_ = Phase::kBegin;
  bool packs_ = true;                                   // in this phase
  absl::Duration phase_at_ = absl::InfiniteDuration();  // infinite: no part yet
  int64_t phase_bytes_ = 0;                             // of parts as they are in the file
  double packed_rate_ = 0, plain_rate_ = 0;             // bytes a second, as measured last
};

// Returns the part of a frame. InvalidArgument: it is no such frame, or has more than 4 MiB.
absl::StatusOr<std::string> UnpackPart(absl::string_view frame);

}  // namespace traind
