#include "worker/train/gang.h"

#include <absl/types/span.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "common/base/status_macros.h"

namespace traind {
namespace {

constexpr absl::Duration kMeetEvery = absl::Milliseconds(100);
constexpr int64_t kMostStepsApart = 1000;

int64_t StepsUntilMeeting(absl::Duration step_time) {
  if (step_time <= absl::ZeroDuration()) return 1;
  return std::clamp<int64_t>(kMeetEvery / step_time, 1, kMostStepsApart);
}

}  // namespace

absl::Status Gang::Agree(int64_t step, absl::Duration step_time, Verdict& verdict) {
  if (group_ == nullptr) return absl::OkStatus();
  int64_t row_share = 0;
  static_assert(sizeof(row_share) == sizeof(verdict.row_share));
  std::memcpy(&row_share, &verdict.row_share, sizeof(row_share));
  int64_t wire[] = {static_cast<int64_t>(verdict.stop),
                    verdict.predict,
                    verdict.validate,
                    verdict.fall_back,
                    verdict.epochs,
                    StepsUntilMeeting(step_time),
                    row_share};
  RETURN_IF_ERROR(group_->Broadcast(absl::MakeSpan(wire)));
  verdict.stop = static_cast<StopCause>(wire[0]);
  verdict.predict = wire[1] != 0;
  verdict.validate = wire[2] != 0;
  verdict.fall_back = wire[3] != 0;
  verdict.epochs = wire[4];
  next_meeting_ = step + wire[5];
  std::memcpy(&verdict.row_share, &wire[6], sizeof(verdict.row_share));
  return absl::OkStatus();
}

absl::Status Gang::ShareFlag(bool& flag) {
  if (group_ == nullptr) return absl::OkStatus();
  float ranks = flag ? 1 : 0;
  RETURN_IF_ERROR(group_->Sum(absl::MakeSpan(&ranks, 1)));
  flag = ranks > 0;
  return absl::OkStatus();
}

absl::Status Gang::ShareNumber(int64_t& number) {
  if (group_ == nullptr) return absl::OkStatus();
  return group_->Broadcast(absl::MakeSpan(&number, 1));
}

absl::Status Gang::ShareText(std::string& text) {
  if (group_ == nullptr) return absl::OkStatus();
  int64_t size = static_cast<int64_t>(text.size());
  RETURN_IF_ERROR(group_->Broadcast(absl::MakeSpan(&size, 1)));
  std::vector<int64_t> words((static_cast<size_t>(size) + 7) / 8);
  if (leads()) std::memcpy(words.data(), text.data(), text.size());
  RETURN_IF_ERROR(group_->Broadcast(absl::MakeSpan(words)));
  text.assign(reinterpret_cast<const char*>(words.data()), static_cast<size_t>(size));
  return absl::OkStatus();
}

}  // namespace traind
