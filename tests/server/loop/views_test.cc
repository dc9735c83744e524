#include "server/loop/views.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace traind {
namespace {

std::shared_ptr<const Job> MakeJob(const std::string& id, JobState state) {
  auto job = std::make_shared<Job>();
  job->id = id;
  job->state = state;
  return job;
}

TEST(JobViewsTest, FindsTheNewestSnapshot) {
  JobViews views;
  EXPECT_EQ(views.Find("a").job, nullptr);
  views.Update({MakeJob("a", JobState::kQueued)});
  const JobViews::View first = views.Find("a");
  views.Update({MakeJob("a", JobState::kRunning)});
  const JobViews::View second = views.Find("a");
  EXPECT_EQ(second.job->state, JobState::kRunning);
  EXPECT_GT(second.change, first.change);
  EXPECT_EQ(first.job->state, JobState::kQueued) << "a snapshot never changes";
}

TEST(JobViewsTest, ATerminalJobIsNotActiveButStaysForThoseWhoWatch) {
  JobViews views;
  views.Update({MakeJob("a", JobState::kSucceeded), MakeJob("b", JobState::kRunning)});
  ASSERT_EQ(views.Active().size(), 1u);
  EXPECT_EQ(views.Active()[0]->id, "b");
  EXPECT_NE(views.Find("a").job, nullptr);
}

TEST(JobViewsTest, TheOldestTerminalJobsAreDropped) {
  JobViews views;
  for (int i = 0; i < 300; ++i) views.Update({MakeJob(std::to_string(i), JobState::kSucceeded)});
  EXPECT_EQ(views.Find("0").job, nullptr);
  EXPECT_NE(views.Find("299").job, nullptr);
}

TEST(JobViewsTest, EndsAreToldInTheirOrderAndOnlyLaterOnes) {
  JobViews views;
  views.Update({MakeJob("b", JobState::kFailed), MakeJob("c", JobState::kRunning)});
  const uint64_t seen = views.WaitAny(0, absl::ZeroDuration());
  views.Update({MakeJob("c", JobState::kCancelled), MakeJob("a", JobState::kSucceeded)});
  EXPECT_EQ(views.Ended(0), (std::vector<std::string>{"b", "c", "a"}));
  EXPECT_EQ(views.Ended(seen), (std::vector<std::string>{"c", "a"}));
  EXPECT_TRUE(views.Ended(views.WaitAny(0, absl::ZeroDuration())).empty());
}

TEST(JobViewsTest, WaitEndsWithAChange) {
  JobViews views;
  views.Update({MakeJob("a", JobState::kQueued)});
  const uint64_t seen = views.Find("a").change;
  std::thread changer([&] { views.Update({MakeJob("a", JobState::kRunning)}); });
  const JobViews::View view = views.Wait("a", seen, absl::Seconds(30));
  changer.join();
  EXPECT_EQ(view.job->state, JobState::kRunning);
}

TEST(JobViewsTest, WaitEndsWhenItIsClosed) {
  JobViews views;
  views.Update({MakeJob("a", JobState::kQueued)});
  std::thread closer([&] { views.Close(); });
  views.Wait("a", views.Find("a").change, absl::InfiniteDuration());
  closer.join();
  EXPECT_TRUE(views.closed());
}

}  // namespace
}  // namespace traind
