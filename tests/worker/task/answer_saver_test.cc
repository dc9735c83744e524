// When a running fold's answers are saved, which files stay, and what is told of them.
#include "worker/task/answer_saver.h"

#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <absl/synchronization/notification.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "common/base/durable_file.h"
#include "common/base/job_layout.h"
#include "tests/worker/fixture/recording_sink.h"

namespace traind {
namespace {

using rank_protocol::FoldSaved;
using rank_protocol::LogText;

constexpr absl::Duration kLong = absl::Seconds(30);

class AnswerSaverTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string folder = testing::TempDir() + "/answers-XXXXXX";
    ASSERT_NE(mkdtemp(folder.data()), nullptr);
    owner_.state_dir = folder;
    owner_.job = "job-a";
    owner_.attempt = 7;
    owner_.fold = 3;
    ASSERT_TRUE(MakeDirs(absl::StrCat(folder, "/", AttemptDir("job-a", 7))).ok());
  }

  FoldSaved Message(bool last = false) const {
    FoldSaved saved;
    saved.attempt = owner_.attempt;
    saved.fold = owner_.fold;
    saved.last = last;
    return saved;
  }

  // Saves answers and waits until they are on disk.
  void SaveInterim(AnswerSaver& saver) {
    saver.Start(Message(), {1, 2}, {{3}, "", ""});
    ASSERT_TRUE(writer_.Wait(kLong));
  }

  bool Exists(const std::string& name) const { return access(InAttempt(name).c_str(), F_OK) == 0; }
  std::string InAttempt(const std::string& name) const {
    return absl::StrCat(owner_.state_dir, "/", AttemptDir(owner_.job, owner_.attempt), "/", name);
  }

  AnswerOwner owner_;
  RecordingSink sink_;
  SimulatedClock clock_{absl::UnixEpoch()};
  BackgroundWriter writer_;
};

TEST_F(AnswerSaverTest, SavingTakesATwentiethOfTheTimeAtMost) {
  AnswerSaver saver(owner_, writer_, sink_, clock_);
  clock_.Advance(absl::Seconds(19));
  EXPECT_FALSE(saver.Due(/*predict_time=*/absl::Seconds(1)));
  clock_.Advance(absl::Seconds(1));
  EXPECT_TRUE(saver.Due(/*predict_time=*/absl::Seconds(1)));
}

TEST_F(AnswerSaverTest, PausesGrowToAQuarterOfTheTimeTrained) {
  AnswerSaver saver(owner_, writer_, sink_, clock_);
  clock_.Advance(absl::Seconds(90));
  SaveInterim(saver);
  clock_.Advance(absl::Seconds(29));
  EXPECT_FALSE(saver.Due(absl::ZeroDuration())) << "29 s are less than a quarter of 119 s";
  clock_.Advance(absl::Seconds(1));
  EXPECT_TRUE(saver.Due(absl::ZeroDuration())) << "30 s are a quarter of 120 s";
}

TEST_F(AnswerSaverTest, TheFirstOnesComeAfterTheLeastPause) {
  AnswerSaver saver(owner_, writer_, sink_, clock_);
  EXPECT_TRUE(saver.Due(absl::ZeroDuration()));
  EXPECT_FALSE(saver.Due(absl::ZeroDuration(), /*least=*/absl::Milliseconds(200)));
  clock_.Advance(absl::Milliseconds(200));
  EXPECT_TRUE(saver.Due(absl::ZeroDuration(), /*least=*/absl::Milliseconds(200)));
}

TEST_F(AnswerSaverTest, WhileAFileIsWrittenAnswersAreSkipped) {
  AnswerSaver saver(owner_, writer_, sink_, clock_);
  absl::Notification written;
  ASSERT_TRUE(writer_.TryStart([&] { written.WaitForNotification(); }));
  EXPECT_FALSE(saver.Due(absl::ZeroDuration()));
  // The test answers were written beforehand; as nothing refers to them, they go.
  const std::string test_file = saver.NextTestFile(/*last=*/false);
  std::ofstream(test_file) << "answers";
  saver.Start(Message(), {1, 2}, {{}, test_file, "digest"});
  EXPECT_FALSE(Exists("test-1.npy"));
  written.Notify();
  ASSERT_TRUE(writer_.Wait(kLong));
  EXPECT_TRUE(saver.Due(absl::ZeroDuration())) << "skipped answers do not postpone the next";
  EXPECT_TRUE(sink_.All<FoldSaved>().empty());
}

TEST_F(AnswerSaverTest, TheMessageNamesTheFilesOnceTheyAreOnDisk) {
  sink_.Listen([&](const rank_protocol::FromProcess&) {
    EXPECT_TRUE(Exists("oof-1.npy") && Exists("test-1.npy"));
  });
  AnswerSaver saver(owner_, writer_, sink_, clock_);
  SaveInterim(saver);
  const std::vector<FoldSaved> sent = sink_.All<FoldSaved>();
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(sent[0].oof, "attempts/7/oof-1.npy");
  EXPECT_EQ(sent[0].test, "attempts/7/test-1.npy");
  EXPECT_EQ(sent[0].oof_sha256.size(), 64u);
  EXPECT_EQ(sent[0].test_sha256.size(), 64u);
  EXPECT_EQ(sent[0].fold, 3);
}

TEST_F(AnswerSaverTest, ThreeInterimAnswersAndTheLastOnesStay) {
  AnswerSaver saver(owner_, writer_, sink_, clock_);
  for (int i = 0; i < 5; ++i) SaveInterim(saver);
  ASSERT_TRUE(saver.SaveLast(Message(/*last=*/true), {1, 2}, {{3}, "", ""}).ok());
  for (const int gone : {1, 2}) {
    EXPECT_FALSE(Exists(absl::StrCat("oof-", gone, ".npy"))) << gone;
    EXPECT_FALSE(Exists(absl::StrCat("test-", gone, ".npy"))) << gone;
  }
  for (const int kept : {3, 4, 5}) {
    EXPECT_TRUE(Exists(absl::StrCat("oof-", kept, ".npy"))) << kept;
    EXPECT_TRUE(Exists(absl::StrCat("test-", kept, ".npy"))) << kept;
  }
  EXPECT_TRUE(Exists("oof.npy") && Exists("test.npy"));
}

TEST_F(AnswerSaverTest, NothingIsSentAfterTheLastAnswers) {
  AnswerSaver saver(owner_, writer_, sink_, clock_);
  ASSERT_TRUE(saver.SaveLast(Message(/*last=*/true), {1, 2}, {{3}, "", ""}).ok());
  SaveInterim(saver);
  const std::vector<FoldSaved> sent = sink_.All<FoldSaved>();
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_TRUE(sent[0].last);
  EXPECT_EQ(sent[0].oof, "attempts/7/oof.npy");
}

TEST_F(AnswerSaverTest, AFailedWriteWarnsAndEndsOnlyTheLastAnswers) {
  owner_.attempt = 8;  // has no folder
  AnswerSaver saver(owner_, writer_, sink_, clock_);
  SaveInterim(saver);
  const std::vector<LogText> warnings = sink_.All<LogText>();
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_EQ(warnings[0].level, "warning");
  EXPECT_TRUE(absl::StartsWith(warnings[0].text,
                               "fold 3 trains on, but its predictions could not be saved: "))
      << warnings[0].text;
  EXPECT_FALSE(saver.SaveLast(Message(/*last=*/true), {1, 2}, {{3}, "", ""}).ok());
  EXPECT_TRUE(sink_.All<FoldSaved>().empty());
}

}  // namespace
}  // namespace traind
