// Predictions of several targets for rows that were sorted, some of which validate no fold.
#include <absl/strings/str_cat.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <string>
#include <vector>

#include "common/base/durable_file.h"
#include "common/base/job_layout.h"
#include "common/data/table/npy.h"
#include "common/data/table/table_reader.h"
#include "common/data/table/table_writer.h"
#include "common/publish/floor_files.h"
#include "common/publish/publisher.h"

namespace traind {
namespace {

constexpr char kJob[] = "job-1";

TEST(SeriesPublishTest, RowsAreInTheFilesOrderWithAColumnForEachTarget) {
  std::string pattern = ::testing::TempDir() + "/publish.XXXXXX";
  const std::string state = mkdtemp(pattern.data());
  TableSource source;
  source.train = {"train.csv", "t,y,z\n1,1,10\n2,2,20\n3,3,30\n4,4,40\n"};
  source.test = {"test.csv", "id,t,z,y\nlate,6,60,6\nsoon,5,50,5\n"};
  source.target = "y";
  source.more_targets = {"z"};
  source.target_kind = TargetKind::kValue;
  source.time = "t";
  source.id = "id";
  source.history = true;
  const auto rows = ReadTable(source);
  ASSERT_TRUE(rows.ok()) << rows.status();
  ASSERT_TRUE(MakeDirs(state + "/" + CacheDir()).ok());
  ASSERT_TRUE(WriteTable(*rows, state + "/" + TableCachePath("key")).ok());
  ASSERT_TRUE(MakeDirs(state + "/" + JobDir(kJob)).ok());
  const std::vector<int16_t> folds = {-1, 0, 0, 1};
  ASSERT_TRUE(WriteNpy(state + "/" + FoldsPath(kJob), {4}, folds).ok());
  Floor floor;
  floor.model = "naive";
  floor.oof.shape = {4, 2};
  // The first row belongs to no fold and does not count in any score.
  floor.oof.values = {1000, 1000, 1, 10, 2, 20, 3, 30};
  floor.test.shape = {2, 2};
  floor.test.values = {4.5f, 45, 5.5f, 55};  // of the rows at times 5 and 6
  ASSERT_TRUE(WriteFloor(state, kJob, floor, [] { return absl::OkStatus(); }).ok());

  PublishRequest request;
  request.state_dir = state;
  request.job = kJob;
  request.table = TableCachePath("key");
  request.metric = "mae";
  request.spec_folds = 2;
  const auto published = Publish(request, absl::FromUnixSeconds(1'800'000'000));
  ASSERT_TRUE(published.ok()) << published.status();
  EXPECT_DOUBLE_EQ(published->floor_score.value_or(0), (1 + 10) / 2.0);
  EXPECT_DOUBLE_EQ(published->test_score.value_or(0), (0.5 + 5) / 2.0);
  EXPECT_EQ(*ReadFile(state + "/" + published->path), "id,y,z\nlate,5.5,55\nsoon,4.5,45\n");
  std::filesystem::remove_all(state);
}

}  // namespace
}  // namespace traind
