// The values of the domain have the numbers and the words of proto/job.proto.
#include "server/domain/names.h"

#include <absl/strings/str_cat.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "proto/job.pb.h"

namespace traind {
namespace {

// Every value of the proto enum but its 0, which says that nothing was said.
template <typename Ours>
void ExpectSame(const google::protobuf::EnumDescriptor* proto, const std::string& prefix,
                const std::function<std::string(Ours)>& name) {
  for (int i = 0; i < proto->value_count(); ++i) {
    const auto* value = proto->value(i);
    if (value->number() == 0) continue;
    EXPECT_EQ(absl::StrCat(prefix, name(static_cast<Ours>(value->number()))), value->name());
  }
}

TEST(NamesTest, AreThoseOfTheProto) {
  const auto name = [](auto value) { return std::string(Name(value)); };
  ExpectSame<JobState>(v1::JobState_descriptor(), "JOB_STATE_", name);
  ExpectSame<JobEndReason>(v1::JobEndReason_descriptor(), "JOB_END_REASON_", name);
  ExpectSame<AttemptEndReason>(v1::AttemptEndReason_descriptor(), "ATTEMPT_END_REASON_", name);
  ExpectSame<TaskState>(v1::TaskState_descriptor(), "TASK_STATE_", name);
  ExpectSame<PendingReason>(v1::PendingReason_descriptor(), "PENDING_REASON_", name);
  ExpectSame<Quality>(v1::Quality_descriptor(), "QUALITY_", QualityName);
}

TEST(NamesTest, ANumberThatNoStateHasIsAQuestionMark) {
  EXPECT_STREQ(Name(static_cast<JobState>(99)), "?");
  EXPECT_STREQ(Name(static_cast<TaskState>(-1)), "?");
}

TEST(NamesTest, TasksAreNamedByKindAndFold) {
  EXPECT_EQ(TaskName(TaskKind::kPrepare, -1, 0, 0), "prepare");
  EXPECT_EQ(TaskName(TaskKind::kTrain, 3, 0, 0), "fold-3");
  EXPECT_EQ(TaskName(TaskKind::kTrain, 3, 0, 2), "fold-3-seed-2");
  EXPECT_EQ(TaskName(TaskKind::kTrain, 3, 12, 0), "fold-3-trial-12");
  EXPECT_EQ(TaskName(TaskKind::kTrain, 3, 1, 2), "fold-3-trial-1-seed-2");
}

TEST(StateTest, ThreeStatesOfAJobAreTerminal) {
  for (JobState state : {JobState::kSucceeded, JobState::kFailed, JobState::kCancelled}) {
    EXPECT_TRUE(IsTerminal(state)) << Name(state);
  }
  for (JobState state : {JobState::kQueued, JobState::kPlanning, JobState::kRunning,
                         JobState::kFinalizing, JobState::kPaused}) {
    EXPECT_FALSE(IsTerminal(state)) << Name(state);
  }
}

TEST(StateTest, PendingAndRunningTasksAreNot) {
  EXPECT_FALSE(IsTerminal(TaskState::kPending));
  EXPECT_FALSE(IsTerminal(TaskState::kRunning));
  for (TaskState state :
       {TaskState::kDone, TaskState::kPartial, TaskState::kDropped, TaskState::kFailed}) {
    EXPECT_TRUE(IsTerminal(state)) << Name(state);
  }
}

}  // namespace
}  // namespace traind
