// What is on disk after the end of a Job's publishing outlives a loss of power.
#include "common/publish/ended_job.h"

#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/publish/prediction_manifest.h"
#include "tests/common/publish/publisher_fixture.h"

namespace {

// The folder whose syncs count, and where `current` led when it was synced last.
std::string* const g_folder = new std::string();
std::string* const g_synced = new std::string();

std::string TargetOf(const std::string& link) {
  std::error_code none;
  return std::filesystem::read_symlink(link, none).string();
}

}  // namespace

// Stands before the one of the C library.
extern "C" int fsync(int fd) {
  struct stat synced, folder;
  if (fstat(fd, &synced) == 0 && stat(g_folder->c_str(), &folder) == 0 &&
      synced.st_dev == folder.st_dev && synced.st_ino == folder.st_ino) {
    *g_synced = TargetOf(*g_folder + "/current");
  }
  return static_cast<int>(syscall(SYS_fsync, fd));
}

namespace traind {
namespace {

class EndedJobTest : public PublisherTest {
 protected:
  EndedJobTest() { *g_folder = InState(JobDir(kJob)); }
  ~EndedJobTest() override { g_folder->clear(); }
};

TEST_F(EndedJobTest, ThePredictionThatStandsIsSynced) {
  const PublishedPrediction stored = MustPublish(Request());
  MustPublish(Request({PutMember(0, 10, true, 4, 0.75f)}));  // by a Worker that was cut off
  ASSERT_EQ(*g_synced, "prediction-2");
  ASSERT_EQ(EndPublishing(state_, kJob, stored.number, stored.quality), absl::OkStatus());
  EXPECT_EQ(*g_synced, "prediction-1");
}

TEST_F(EndedJobTest, TheRemovalOfThePredictionThatStandsIsSynced) {
  MustPublish(Request());  // by a Worker that was cut off
  ASSERT_EQ(*g_synced, "prediction-1");
  ASSERT_EQ(EndPublishing(state_, kJob, 0, Quality::kNone), absl::OkStatus());
  EXPECT_EQ(*g_synced, "");
}

// The end of a Job may tell that its Plan was cut, of which the Worker that published knew nothing.
TEST_F(EndedJobTest, TheManifestSaysTheQualityThatTheEndHasFound) {
  const PublishedPrediction stored = MustPublish(Request({PutMember(0, 10, true, 4, 0.75f)}));
  const PredictionManifest before = *ReadStandingManifest(state_, kJob);
  ASSERT_NE(before.prediction.quality, Quality::kFloor);
  ASSERT_EQ(EndPublishing(state_, kJob, stored.number, Quality::kFloor), absl::OkStatus());
  PredictionManifest after = *ReadStandingManifest(state_, kJob);
  EXPECT_EQ(after.prediction.quality, Quality::kFloor);
  EXPECT_EQ(ReadStandingPrediction(state_, kJob)->sha256, stored.sha256);
  after.prediction.quality = before.prediction.quality;
  EXPECT_EQ(EncodeManifest(after), EncodeManifest(before));
}

}  // namespace
}  // namespace traind
