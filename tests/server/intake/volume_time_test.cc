#include "server/intake/volume_time.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace traind {
namespace {

using ::testing::HasSubstr;

// 12 volumes in 3 folds, of which the slower one took 10 s.
Job Source() {
  Job job;
  job.id = "spots-1";
  job.spec.folds = 3;
  job.table.train_rows = 12;
  job.tasks.resize(4);
  job.tasks[1].measured.evaluate_s = 6;
  job.tasks[2].measured.evaluate_s = 10;
  return job;
}

TEST(VolumeTimeTest, TheSlowestModelCounts) { EXPECT_EQ(SecondsPerVolume(Source()), 2.5); }

TEST(VolumeTimeTest, TooLittleTimeForOneModelIsTold) {
  EXPECT_EQ(VolumeTimeWarning(Source(), 8, absl::Seconds(20)), "");
  const std::string warning = VolumeTimeWarning(Source(), 8, absl::Seconds(19));
  EXPECT_THAT(warning, HasSubstr("a model of job spots-1 took 2.5 s for a volume on its slot, so "
                                 "one needs about 20s for 8 volumes of that size, and 19s are "
                                 "left"));
  EXPECT_THAT(warning, HasSubstr("the floor's answer"));
  EXPECT_EQ(VolumeTimeWarning(Source(), 8, absl::InfiniteDuration()), "");
}

TEST(VolumeTimeTest, WhatWasNotMeasuredIsNoWarning) {
  Job job = Source();
  for (Task& task : job.tasks) task.measured = Measured();
  EXPECT_EQ(SecondsPerVolume(job), 0);
  EXPECT_EQ(VolumeTimeWarning(job, 1000, absl::Seconds(1)), "");
  job = Source();
  job.table.train_rows = 0;
  EXPECT_EQ(SecondsPerVolume(job), 0);
}

}  // namespace
}  // namespace traind
