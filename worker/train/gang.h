// How the ranks of a gang come to the same decisions at the same step.
#pragma once

#include <absl/status/status.h>
#include <absl/time/time.h>

#include <cstdint>
#include <string>

#include "common/facts/reasons.h"
#include "worker/device/collective.h"
#include "worker/task/fold_trainer.h"

namespace traind {

// Actions due before the next step.
struct Verdict {
  StopCause stop = StopCause::kNone;
  bool predict = true;  // when stopping
  bool validate = false;
  bool fall_back = false;  // to float32, from the last good state
  int64_t epochs = 0;      // planned; 0: as before
  double row_share = 0;    // that an epoch sees; 0: as before
};

// Rank 0 decides, the others follow. They meet only every so many steps, as each
// meeting costs a broadcast: about ten times a second, at steps that all know.
// Alone there is nothing to agree on, and every step is a meeting.
// Threads: confined to one.
class Gang {
 public:
  explicit Gang(Group* group) : group_(group) {}  // null: alone

  int rank() const { return group_ == nullptr ? 0 : group_->rank(); }
  int world_size() const { return group_ == nullptr ? 1 : group_->world_size(); }
  bool leads() const { return rank() == 0; }
  Group* group() const { return group_; }

  bool MeetsAt(int64_t step) const { return group_ == nullptr || step >= next_meeting_; }

  // REQUIRES: MeetsAt(step), on every rank. `verdict` becomes rank 0's. step_time:
  // of a recent step; zero: not known yet.
  absl::Status Agree(int64_t step, absl::Duration step_time, Verdict& verdict);
  // `flag` becomes whether it is set on any rank.
  absl::Status ShareFlag(bool& flag);
  // `number` becomes rank 0's.
  absl::Status ShareNumber(int64_t& number);
  // `text` becomes rank 0's.
  absl::Status ShareText(std::string& text);
  // The next step is a meeting, whatever was agreed: after a jump to another step.
  void MeetNext() { next_meeting_ = 0; }

 private:
  Group* const group_;
  int64_t next_meeting_ = 0;
};

}  // namespace traind
