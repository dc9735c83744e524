// A Job with folds and a floor, from which tests publish.
#pragma once

#include <absl/strings/str_cat.h>
#include <absl/time/time.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "common/base/durable_file.h"
#include "common/base/job_layout.h"
#include "common/data/table/npy.h"
#include "common/data/table/table_writer.h"
#include "common/publish/floor_files.h"
#include "common/publish/publisher.h"
#include "tests/common/data/table/table_fixture.h"

namespace traind {

namespace fs = std::filesystem;

inline constexpr char kJob[] = "job-1";
inline constexpr int kFolds = 3;
inline constexpr int kRows = 12;  // 4 in each fold
inline constexpr int kTestRows = 4;
inline const absl::Time kNow = absl::FromUnixSeconds(1'800'000'000);

// The Job has a table of two classes ("no" and "yes, a lot" alternate), folds, and a floor that
// gives every row the probabilities 0.5, 0.5, so that 50 % are right.
class PublisherTest : public ::testing::Test {
 protected:
  PublisherTest() {
    std::string pattern = ::testing::TempDir() + "/publish.XXXXXX";
    state_ = mkdtemp(pattern.data());
    std::string train = "a,y\n", test = "id,a,y\n";
    for (int i = 0; i < kRows; ++i) absl::StrAppend(&train, i, ",", Label(i), "\n");
    for (int i = 0; i < kTestRows; ++i) {
      absl::StrAppend(&test, i == 0 ? "\"x,\"\"0\"" : absl::StrCat("x", i), ",", i, ",", Label(i),
                      "\n");
    }
    MakeTable(train, test);
    std::vector<int16_t> folds;
    for (int i = 0; i < kRows; ++i) folds.push_back(static_cast<int16_t>(i / 4));
    EXPECT_TRUE(MakeDirs(InState(JobDir(kJob))).ok());
    EXPECT_TRUE(WriteNpy(InState(FoldsPath(kJob)), {kRows}, folds).ok());
    PutFloor("prior", 0.5f);
  }
  ~PublisherTest() override { fs::remove_all(state_); }

  static std::string Label(int row) { return row % 2 == 0 ? "no" : "\"yes, a lot\""; }
  std::string InState(const std::string& path) const { return state_ + "/" + path; }

  void MakeTable(const std::string& train, const std::string& test) {
    const auto rows =
        testing_table::Read(train, test, TargetKind::kClasses, test.empty() ? "" : "id");
    EXPECT_TRUE(rows.ok()) << rows.status();
    EXPECT_TRUE(MakeDirs(InState(CacheDir())).ok());
    EXPECT_TRUE(WriteTable(*rows, InState(TableCachePath("key"))).ok());
  }

  // Writes a floor that says "no" with this probability.
  void PutFloor(const std::string& model, float no, int test_rows = kTestRows) {
    Floor floor;
    floor.model = model;
    floor.score = 0.5;
    floor.oof.shape = {kRows, 2};
    for (int i = 0; i < kRows; ++i) Add(floor.oof.values, no);
    floor.test.shape = {test_rows, 2};
    for (int i = 0; i < test_rows; ++i) Add(floor.test.values, no);
    EXPECT_TRUE(WriteFloor(state_, kJob, floor, [] { return absl::OkStatus(); }).ok());
  }

  static void Add(std::vector<float>& values, float no) {
    values.push_back(no);
    values.push_back(1 - no);
  }

  // Writes a member that is right on the given number of the fold's four rows, and that gives "no"
  // the probability no_in_test on the test rows.
  Member PutMember(int fold, int64_t attempt, bool complete, int right, float no_in_test,
                   int test_rows = kTestRows) {
    const std::string dir = AttemptDir(kJob, attempt);
    EXPECT_TRUE(MakeDirs(InState(dir)).ok());
    std::vector<float> oof, test;
    for (int i = 0; i < 4; ++i) Add(oof, (i % 2 == 0) == (i < right) ? 0.9f : 0.1f);
    for (int i = 0; i < test_rows; ++i) Add(test, no_in_test);
    Member member;
    member.fold = fold;
    member.attempt = attempt;
    member.complete = complete;
    member.epochs_done = complete ? 20 : 5;
    member.score = right / 4.0;
    member.oof = absl::StrCat("attempts/", attempt, "/", kOofFile);
    member.test = absl::StrCat("attempts/", attempt, "/", kTestFile);
    member.oof_sha256 = Put(member.oof, EncodeNpy({4, 2}, oof));
    member.test_sha256 = Put(member.test, EncodeNpy({test_rows, 2}, test));
    return member;
  }

  // Writes a file of the Job's folder without syncing it; returns its digest.
  std::string Put(const std::string& path, const std::string& bytes) const {
    std::ofstream(InState(JobDir(kJob)) + "/" + path, std::ios::binary) << bytes;
    return Sha256Hex(bytes);
  }

  PublishRequest Request(std::vector<Member> members = {}) const {
    PublishRequest request;
    request.state_dir = state_;
    request.job = kJob;
    request.table = TableCachePath("key");
    request.metric = "accuracy";
    request.spec_folds = kFolds;
    request.members = std::move(members);
    return request;
  }

  PublishedPrediction MustPublish(const PublishRequest& request) const {
    const auto published = Publish(request, kNow);
    EXPECT_TRUE(published.ok()) << published.status();
    return published.ok() ? *published : PublishedPrediction();
  }

  std::string Csv() const { return *ReadFile(InState(CurrentLink(kJob)) + "/predictions.csv"); }

  static std::vector<int> FoldsOf(const std::vector<Member>& members) {
    std::vector<int> folds;
    for (const Member& member : members) folds.push_back(member.fold);
    return folds;
  }

  std::string state_;
};

}  // namespace traind
