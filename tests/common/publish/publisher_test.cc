#include "common/publish/publisher.h"

#include <absl/strings/str_cat.h>
#include <absl/time/clock.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "common/base/durable_file.h"
#include "common/base/job_layout.h"
#include "common/data/table/npy.h"
#include "common/data/table/sample_plan.h"
#include "common/data/table/table_writer.h"
#include "common/publish/ended_job.h"
#include "common/publish/floor_files.h"
#include "common/publish/prediction_files.h"
#include "common/publish/publish_lock.h"
#include "tests/common/publish/publisher_fixture.h"

namespace traind {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST_F(PublisherTest, TheFloorIsTheFirstPrediction) {
  const PublishedPrediction p = MustPublish(Request());
  EXPECT_EQ(p.number, 1);
  EXPECT_TRUE(p.changed);
  EXPECT_EQ(p.quality, Quality::kFloor);
  EXPECT_EQ(p.rows, kTestRows);
  EXPECT_EQ(p.path, "jobs/job-1/prediction-1/predictions.csv");
  EXPECT_EQ(p.oof_score, 0.5);
  EXPECT_EQ(p.floor_score, 0.5);
  EXPECT_EQ(p.test_score, 0.5);
  EXPECT_TRUE(p.comparable);
  EXPECT_EQ(Csv(),
            "id,y,p_no,\"p_yes, a lot\"\n"
            "\"x,\"\"0\",no,0.5,0.5\nx1,no,0.5,0.5\nx2,no,0.5,0.5\nx3,no,0.5,0.5\n");
  EXPECT_EQ(p.sha256, Sha256Hex(Csv()));
  EXPECT_EQ(p.bytes, static_cast<int64_t>(Csv().size()));
}

TEST_F(PublisherTest, TheStandingPredictionIsReadBackAsItWasPublished) {
  EXPECT_EQ(ReadStandingPrediction(state_, kJob).status().code(), absl::StatusCode::kNotFound);
  PublishRequest request = Request({PutMember(0, 10, true, 4, 0.75f)});
  const PublishedPrediction p = MustPublish(request);
  const auto read = ReadStandingPrediction(state_, kJob);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->number, p.number);
  EXPECT_EQ(read->path, p.path);
  EXPECT_EQ(read->sha256, p.sha256);
  EXPECT_EQ(read->quality, Quality::kDegraded);
  EXPECT_EQ(read->oof_score, 1.0);
  EXPECT_FALSE(read->comparable);
  EXPECT_EQ(read->test_score, p.test_score);
  EXPECT_EQ(read->floor_score, 0.5);
  EXPECT_EQ(read->at, kNow);
  ASSERT_EQ(read->members.size(), 1u);
  EXPECT_EQ(read->members[0].attempt, 10);
  EXPECT_EQ(read->members[0].oof_sha256, request.members[0].oof_sha256);
  EXPECT_EQ(read->members[0].epochs_done, 20);
}

TEST_F(PublisherTest, TheAnswerIsTheMeanOfTheMembers) {
  MustPublish(Request({PutMember(0, 10, true, 4, 0.75f), PutMember(2, 11, true, 3, 0.125f)}));
  EXPECT_THAT(Csv(), HasSubstr("x1,\"yes, a lot\",0.4375,0.5625\n"));
}

TEST_F(PublisherTest, AfterTheEndOfAJobThePredictionThatIsStoredStands) {
  const PublishedPrediction stored = MustPublish(Request());
  const PublishRequest later = Request({PutMember(0, 10, true, 4, 0.75f)});
  EXPECT_EQ(MustPublish(later).number, stored.number + 1);  // by a Worker that was cut off
  ASSERT_EQ(EndPublishing(state_, kJob, stored.number, stored.quality), absl::OkStatus());
  const auto standing = ReadStandingPrediction(state_, kJob);
  ASSERT_TRUE(standing.ok()) << standing.status();
  EXPECT_EQ(standing->sha256, stored.sha256);
  EXPECT_TRUE(absl::IsFailedPrecondition(Publish(later, kNow).status()));
  EXPECT_EQ(ReadStandingPrediction(state_, kJob)->sha256, stored.sha256);
  // A Job that has no Prediction in the store has none that stands.
  ASSERT_EQ(EndPublishing(state_, kJob, 0, Quality::kNone), absl::OkStatus());
  EXPECT_TRUE(absl::IsNotFound(ReadStandingPrediction(state_, kJob).status()));
  EXPECT_EQ(EndPublishing(state_, "a-job-without-a-folder", 1, Quality::kFull), absl::OkStatus());
}

TEST_F(PublisherTest, APredictionThatIsBeingWrittenWhenTheJobEndsDoesNotStand) {
  const PublishedPrediction stored = MustPublish(Request());
  AnswerColumns columns;
  columns.targets = {"y"};
  auto writer = PredictionWriter::Begin(state_, kJob, columns, {}, 1);
  ASSERT_TRUE(writer.ok()) << writer.status();
  ASSERT_EQ((*writer)->Add("", {1.5f}), absl::OkStatus());
  ASSERT_EQ(EndPublishing(state_, kJob, stored.number, stored.quality), absl::OkStatus());
  PredictionManifest manifest;
  EXPECT_TRUE(absl::IsFailedPrecondition((*writer)->Commit(manifest)));
  EXPECT_EQ(ReadStandingPrediction(state_, kJob)->number, stored.number);
  const std::string late = PredictionDir(kJob, stored.number + 1);
  EXPECT_FALSE(std::filesystem::exists(absl::StrCat(state_, "/", late)));
}

TEST_F(PublisherTest, TheEndOfAJobIsMarkedWhileAnotherPublisherHoldsTheLock) {
  const PublishedPrediction stored = MustPublish(Request());
  auto lock = JobPublishLock::Acquire(state_, kJob, absl::Seconds(10));
  ASSERT_TRUE(lock.ok()) << lock.status();
  std::thread end([&] {
    EXPECT_EQ(EndPublishing(state_, kJob, stored.number, stored.quality), absl::OkStatus());
  });
  const absl::Time limit = absl::Now() + absl::Seconds(20);
  while (CheckNotEnded(state_, kJob).ok() && absl::Now() < limit) {
    absl::SleepFor(absl::Milliseconds(1));
  }
  EXPECT_TRUE(absl::IsFailedPrecondition(CheckNotEnded(state_, kJob)));
  { const JobPublishLock released = *std::move(lock); }
  end.join();
}

TEST_F(PublisherTest, AfterTheEndOfAJobItsFloorAndTheModelBehindItStay) {
  bool model_written = false;
  Floor floor;
  floor.model = "late";
  const auto keep_model = [&model_written] {
    model_written = true;
    return absl::OkStatus();
  };
  ASSERT_EQ(EndPublishing(state_, kJob, 0, Quality::kNone), absl::OkStatus());
  EXPECT_TRUE(absl::IsFailedPrecondition(WriteFloor(state_, kJob, floor, keep_model)));
  EXPECT_FALSE(model_written);
  EXPECT_EQ(ReadFloor(state_, kJob)->model, "prior");
}

TEST_F(PublisherTest, MembersOfTheStandingPredictionStay) {
  const Member first = PutMember(0, 10, true, 4, 0.75f);
  MustPublish(Request({first}));
  // Another process knows only of fold 1.
  const PublishedPrediction p = MustPublish(Request({PutMember(1, 11, true, 4, 0.25f)}));
  EXPECT_THAT(FoldsOf(p.members), ElementsAre(0, 1));
  EXPECT_EQ(p.number, 2);
}

TEST_F(PublisherTest, FullNeedsAllFoldsCompleteAndAnUncutPlan) {
  const Member a = PutMember(0, 10, true, 4, 0.5f), b = PutMember(1, 11, true, 4, 0.5f),
               c = PutMember(2, 12, true, 4, 0.5f);
  EXPECT_EQ(MustPublish(Request({a, b})).quality, Quality::kDegraded);
  PublishRequest cut = Request({a, b, c});
  cut.plan_cut = true;
  const PublishedPrediction degraded = MustPublish(cut);
  EXPECT_EQ(degraded.quality, Quality::kDegraded);
  EXPECT_TRUE(degraded.comparable) << "all folds of the spec are covered";
  EXPECT_EQ(MustPublish(Request({a, b, c})).quality, Quality::kFull);
}

TEST_F(PublisherTest, AnIncompleteFoldIsNeverFull) {
  const PublishedPrediction p =
      MustPublish(Request({PutMember(0, 10, true, 4, 0.5f), PutMember(1, 11, true, 4, 0.5f),
                           PutMember(2, 12, false, 4, 0.5f)}));
  EXPECT_EQ(p.quality, Quality::kDegraded);
  EXPECT_EQ(p.members.size(), 3u);
}

TEST_F(PublisherTest, AnIncompleteFoldBelowTheFloorIsLeftOut) {
  const PublishedPrediction p =
      MustPublish(Request({PutMember(0, 10, true, 4, 0.75f), PutMember(1, 11, false, 1, 0.01f)}));
  EXPECT_THAT(FoldsOf(p.members), ElementsAre(0));
  EXPECT_THAT(p.left_out, ElementsAre(1));
  EXPECT_THAT(Csv(), HasSubstr("x1,no,0.75,0.25\n"));
  // A complete fold counts as it is.
  EXPECT_THAT(FoldsOf(MustPublish(Request({PutMember(1, 12, true, 1, 0.01f)})).members),
              ElementsAre(0, 1));
}

TEST_F(PublisherTest, AFoldThatWasLuckyWithItsRowsDoesNotOutliveItsLikeWhateverTheOrder) {
  const std::vector<Member> all = {PutMember(0, 11, true, 3, 0.9f), PutMember(1, 12, true, 0, 0.9f),
                                   PutMember(2, 13, true, 0, 0.9f)};
  for (const std::vector<size_t>& order :
       std::vector<std::vector<size_t>>{{0, 1, 2}, {1, 0, 2}, {2, 1, 0}}) {
    ASSERT_TRUE(Publish(Request(), kNow).ok());
    std::vector<Member> known;
    absl::StatusOr<PublishedPrediction> last;
    for (const size_t next : order) {
      known.push_back(all[next]);
      last = Publish(Request(known), kNow);
      ASSERT_TRUE(last.ok()) << last.status();
    }
    EXPECT_EQ(last->quality, Quality::kFloor) << "3 of 12 rows are right; the floor has 6";
    EXPECT_TRUE(last->members.empty());
    EXPECT_EQ(last->left_out, (std::vector<int>{0, 1, 2}));
    fs::remove(InState(CurrentLink(kJob)));
  }
}

TEST_F(PublisherTest, WhereMostIncompleteFoldsLoseToTheFloorAllAreJudgedTogether) {
  const auto lost =
      Publish(Request({PutMember(0, 11, false, 3, 0.9f), PutMember(1, 12, false, 1, 0.9f),
                       PutMember(2, 13, false, 1, 0.9f)}),
              kNow);
  ASSERT_TRUE(lost.ok()) << lost.status();
  EXPECT_TRUE(lost->members.empty()) << "fold 0 alone had been luckier than the floor";
  const auto won =
      Publish(Request({PutMember(0, 21, false, 4, 0.9f), PutMember(1, 22, false, 1, 0.9f),
                       PutMember(2, 23, false, 1, 0.9f)}),
              kNow);
  ASSERT_TRUE(won.ok()) << won.status();
  EXPECT_EQ(won->members.size(), 3u) << "6 of 12 rows are right, as the floor's";
}

TEST_F(PublisherTest, OfAForwardSplitACompleteFoldBelowTheFloorIsLeftOutToo) {
  SplitSpec split;
  split.kind = SplitKind::kForward;
  ASSERT_EQ(WriteSamplePlan(InState(SamplesPath(kJob)), split), absl::OkStatus());
  const PublishedPrediction p =
      MustPublish(Request({PutMember(0, 10, true, 4, 0.75f), PutMember(1, 11, true, 1, 0.01f)}));
  EXPECT_THAT(FoldsOf(p.members), ElementsAre(0));
  EXPECT_THAT(p.left_out, ElementsAre(1));
  EXPECT_THAT(Csv(), HasSubstr("x1,no,0.75,0.25\n"));
  EXPECT_EQ(p.quality, Quality::kDegraded);
  // Quality says how much of the plan was done.
  const PublishedPrediction all =
      MustPublish(Request({PutMember(1, 11, true, 1, 0.01f), PutMember(2, 12, true, 4, 0.75f)}));
  EXPECT_THAT(FoldsOf(all.members), ElementsAre(0, 2));
  EXPECT_EQ(all.quality, Quality::kFull);
  EXPECT_FALSE(all.comparable);
}

TEST_F(PublisherTest, AWorseIncompleteAttemptDoesNotReplaceABetterOne) {
  const PublishedPrediction standing = MustPublish(Request({PutMember(0, 10, false, 4, 0.75f)}));
  const PublishedPrediction p = MustPublish(Request({PutMember(0, 11, false, 3, 0.25f)}));
  EXPECT_FALSE(p.changed);
  EXPECT_EQ(p.number, standing.number);
  EXPECT_EQ(p.sha256, standing.sha256);
  // Once it is complete it replaces it, because quality says how much of the plan was done.
  EXPECT_TRUE(MustPublish(Request({PutMember(0, 12, true, 3, 0.25f)})).changed);
}

TEST_F(PublisherTest, ACompleteMemberGoesBeforeANewerIncompleteOne) {
  MustPublish(Request({PutMember(0, 10, true, 3, 0.75f)}));
  const PublishedPrediction p = MustPublish(Request({PutMember(0, 11, false, 4, 0.25f)}));
  EXPECT_FALSE(p.changed);
  ASSERT_EQ(p.members.size(), 1u);
  EXPECT_EQ(p.members[0].attempt, 10);
}

TEST_F(PublisherTest, TheSameMembersAgainChangeNothing) {
  const Member member = PutMember(0, 10, true, 4, 0.75f);
  MustPublish(Request({member}));
  const PublishedPrediction again = MustPublish(Request({member}));
  EXPECT_FALSE(again.changed);
  EXPECT_EQ(again.number, 1);
  EXPECT_FALSE(MustPublish(Request()).changed) << "the floor does not replace a member";
}

TEST_F(PublisherTest, ABetterFloorReplacesTheFloorAndAWorseOneDoesNot) {
  MustPublish(Request());
  PutFloor("logistic", 0.9f);  // as accurate as before: all "no"
  const PublishedPrediction p = MustPublish(Request());
  EXPECT_TRUE(p.changed);
  EXPECT_EQ(p.number, 2);
  EXPECT_THAT(Csv(), HasSubstr("x1,no,0.9,0.1"));
  EXPECT_FALSE(MustPublish(Request()).changed);
  // Log loss prefers 0.5 to 0.9 on alternating labels.
  PublishRequest by_logloss = Request();
  by_logloss.metric = "logloss";
  PutFloor("prior", 0.99f);
  EXPECT_FALSE(MustPublish(by_logloss).changed);
}

TEST_F(PublisherTest, DamagedMembersAreLeftOut) {
  const Member good = PutMember(0, 10, true, 4, 0.75f);
  Member flipped = PutMember(1, 11, true, 4, 0.25f);
  const std::string path = InState(JobDir(kJob)) + "/" + flipped.test;
  std::string bytes = *ReadFile(path);
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  ASSERT_TRUE(WriteFileDurably(path, bytes).ok());
  Member gone = PutMember(2, 12, true, 4, 0.25f);
  ASSERT_TRUE(fs::remove(InState(JobDir(kJob)) + "/" + gone.oof));
  Member outside = PutMember(2, 13, true, 4, 0.25f);
  outside.oof = "../job-1/" + outside.oof;
  Member no_fold = PutMember(2, 14, true, 4, 0.25f);
  no_fold.fold = kFolds;
  EXPECT_THAT(FoldsOf(MustPublish(Request({good, flipped, gone, outside, no_fold})).members),
              ElementsAre(0));
}

TEST_F(PublisherTest, AnOlderWholeMemberAnswersForADamagedNewerOne) {
  const Member older = PutMember(0, 10, true, 4, 0.75f);
  Member newer = PutMember(0, 11, true, 4, 0.25f);
  newer.test_sha256[0] = newer.test_sha256[0] == '0' ? '1' : '0';
  const PublishedPrediction p = MustPublish(Request({newer, older}));
  ASSERT_EQ(p.members.size(), 1u);
  EXPECT_EQ(p.members[0].attempt, 10);
}

TEST_F(PublisherTest, MembersOfAnotherShapeOrWithoutNumbersAreLeftOut) {
  const Member wide = PutMember(0, 10, true, 4, 0.75f, kTestRows + 1);
  Member nan = PutMember(1, 11, true, 4, 0.25f);
  std::vector<float> test(kTestRows * 2, std::numeric_limits<float>::quiet_NaN());
  const std::string path = InState(JobDir(kJob)) + "/" + nan.test;
  ASSERT_TRUE(WriteNpy(path, {kTestRows, 2}, test).ok());
  nan.test_sha256 = DigestFile(path)->sha256;
  const PublishedPrediction p = MustPublish(Request({wide, nan}));
  EXPECT_THAT(p.members, IsEmpty());
  EXPECT_EQ(p.quality, Quality::kFloor);
}

TEST_F(PublisherTest, ADamagedStandingFileIsWrittenAnew) {
  const Member member = PutMember(0, 10, true, 4, 0.75f);
  const PublishedPrediction first = MustPublish(Request({member}));
  ASSERT_TRUE(WriteFileDurably(InState(first.path), "half a fi").ok());
  const PublishedPrediction p = MustPublish(Request());
  EXPECT_TRUE(p.changed);
  EXPECT_EQ(p.number, 2);
  EXPECT_THAT(FoldsOf(p.members), ElementsAre(0)) << "its manifest still tells the members";
  EXPECT_EQ(p.sha256, first.sha256);
}

TEST_F(PublisherTest, ADamagedFloorIsNoAnswer) {
  ASSERT_TRUE(WriteFileDurably(InState(FloorDir(kJob)) + "/test.npy", "x").ok());
  EXPECT_EQ(Publish(Request(), kNow).status().code(), absl::StatusCode::kNotFound);
  const PublishedPrediction p = MustPublish(Request({PutMember(0, 10, false, 0, 0.75f)}));
  EXPECT_THAT(FoldsOf(p.members), ElementsAre(0)) << "without a floor every member answers";
  EXPECT_FALSE(p.floor_score.has_value());
}

TEST_F(PublisherTest, AFloorWriterKilledBetweenItsFilesLeavesAWholeFloor) {
  const std::string dir = InState(FloorDir(kJob));
  const std::string oof = *ReadFile(dir + "/oof.npy");
  PutFloor("logistic", 0.9f);
  ASSERT_TRUE(WriteFileDurably(dir + "/oof.npy", oof).ok());  // the second file was not reached
  EXPECT_EQ(MustPublish(Request()).quality, Quality::kFloor);
}

TEST_F(PublisherTest, WithoutTestRowsThereAreScoresAndNoFiles) {
  std::string train = "a,y\n";
  for (int i = 0; i < kRows; ++i) absl::StrAppend(&train, i, ",", Label(i), "\n");
  MakeTable(train, "");
  PutFloor("prior", 0.5f, 0);
  Member member = PutMember(0, 10, true, 3, 0.5f);
  member.test = member.test_sha256 = "";
  const PublishedPrediction p = MustPublish(Request({member}));
  EXPECT_EQ(p.number, 0);
  EXPECT_EQ(p.rows, 0);
  EXPECT_EQ(p.oof_score, 0.75);
  EXPECT_EQ(p.quality, Quality::kDegraded);
  EXPECT_FALSE(fs::exists(InState(JobDir(kJob)) + "/prediction-1"));
}

TEST_F(PublisherTest, OnlyTheLastThreeFoldersStay) {
  for (int attempt = 1; attempt <= 5; ++attempt) {
    MustPublish(Request({PutMember(0, attempt, true, 4, 0.1f * static_cast<float>(attempt))}));
  }
  for (int n = 1; n <= 5; ++n) {
    EXPECT_EQ(fs::exists(InState(PredictionDir(kJob, n))), n > 2) << n;
  }
  EXPECT_EQ(ReadStandingPrediction(state_, kJob)->number, 5);
}

TEST_F(PublisherTest, AFullDiskLeavesTheStandingPrediction) {
  const PublishedPrediction standing = MustPublish(Request());
  const Member member = PutMember(0, 10, true, 4, 0.75f);
  // No file may grow past 40 bytes: as on a full disk, a write fails half-way.
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  rlimit small = before;
  small.rlim_cur = 40;
  auto* const old_handler = signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const auto published = Publish(Request({member}), kNow);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  signal(SIGXFSZ, old_handler);
  EXPECT_FALSE(published.ok());
  const auto read = ReadStandingPrediction(state_, kJob);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->sha256, standing.sha256);
  EXPECT_EQ(read->sha256, Sha256Hex(Csv()));
  EXPECT_FALSE(fs::exists(InState(JobDir(kJob)) + "/publishing"));
}

TEST_F(PublisherTest, PublishersAtTheSameTimeWaitForEachOther) {
  std::vector<Member> members;
  for (int fold = 0; fold < kFolds; ++fold)
    members.push_back(PutMember(fold, 10 + fold, true, 4, 0.5f));
  std::vector<std::thread> threads;
  for (int i = 0; i < 6; ++i) {
    threads.emplace_back([&, i] { EXPECT_TRUE(Publish(Request({members[i % 3]}), kNow).ok()); });
  }
  for (std::thread& thread : threads) thread.join();
  const auto read = ReadStandingPrediction(state_, kJob);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_THAT(FoldsOf(read->members), ElementsAre(0, 1, 2));
  EXPECT_EQ(read->quality, Quality::kFull);
}

// A child publishes three times and is killed at some instant. The standing Prediction is then
// whole and no older than before.
TEST_F(PublisherTest, AKillAtAnyInstantLeavesAWholePrediction) {
  constexpr int kRounds = 50;
  const auto members_of = [&](int round) {
    std::vector<Member> members;
    for (int i = 0; i < kFolds; ++i) {
      members.push_back(PutMember(i, 1000 + round * 3 + i, true, 4,
                                  0.001f * static_cast<float>(round * 3 + i + 1)));
    }
    return members;
  };
  const absl::Time begin = absl::Now();
  for (const Member& member : members_of(0)) MustPublish(Request({member}));
  const absl::Duration uninterrupted = absl::Now() - begin;

  int last = 3;
  int grew = 0;
  int killed = 0;
  for (int round = 1; round <= kRounds; ++round) {
    const std::vector<Member> members = members_of(round);
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      for (const Member& member : members) {
        if (!Publish(Request({member}), kNow).ok()) _exit(1);
      }
      _exit(0);
    }
    absl::SleepFor(1.2 * uninterrupted * round / kRounds);
    kill(child, SIGKILL);
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_FALSE(WIFEXITED(status) && WEXITSTATUS(status) != 0);
    killed += WIFSIGNALED(status);

    const auto standing = ReadStandingPrediction(state_, kJob);
    ASSERT_TRUE(standing.ok()) << "round " << round << ": " << standing.status();
    const auto csv = ReadFile(InState(standing->path));
    ASSERT_TRUE(csv.ok()) << csv.status();
    EXPECT_EQ(Sha256Hex(*csv), standing->sha256) << "round " << round;
    EXPECT_GE(standing->number, last);
    grew += standing->number > last;
    last = standing->number;
  }
  EXPECT_GT(grew, 0);
  EXPECT_GT(killed, 0);
  // The next publisher succeeds with any files that the killed child left.
  EXPECT_TRUE(MustPublish(Request({PutMember(0, 9999, true, 4, 0.999f)})).changed);
  EXPECT_FALSE(fs::exists(InState(JobDir(kJob)) + "/publishing"));
}

TEST_F(PublisherTest, AManifestThatIsDamagedIsDataLoss) {
  MustPublish(Request());
  const std::string path = InState(PredictionDir(kJob, 1)) + "/manifest.json";
  const std::string text = *ReadFile(path);
  for (const char* bad : {"", "{", "[]", "{\"number\":1}"}) {
    ASSERT_TRUE(WriteFileDurably(path, bad).ok());
    EXPECT_EQ(ReadStandingPrediction(state_, kJob).status().code(), absl::StatusCode::kDataLoss);
  }
  for (const auto& [from, to] :
       std::vector<std::pair<std::string, std::string>>{{"\"number\": 1", "\"number\": \"1\""},
                                                        {"\"number\": 1", "\"number\": 2"},
                                                        {"\"FLOOR\"", "\"FLAWED\""},
                                                        {"\"members\": []", "\"members\": [1]"},
                                                        {"\"members\": []", "\"members\": {}"},
                                                        {"\"at\": \"2", "\"at\": \"x"}}) {
    std::string changed = text;
    const size_t at = changed.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    ASSERT_TRUE(WriteFileDurably(path, changed.replace(at, from.size(), to)).ok());
    EXPECT_EQ(ReadStandingPrediction(state_, kJob).status().code(), absl::StatusCode::kDataLoss)
        << to;
  }
  // The next one is published as if there was none.
  EXPECT_EQ(MustPublish(Request()).number, 2);
}

TEST_F(PublisherTest, MetricsThatDoNotSuitTheTargetAreRefused) {
  PublishRequest request = Request();
  request.metric = "rmse";
  EXPECT_EQ(Publish(request, kNow).status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace traind
