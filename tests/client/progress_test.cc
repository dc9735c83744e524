#include "client/progress.h"

#include <absl/strings/match.h>
#include <absl/strings/str_join.h>
#include <absl/time/clock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include "client/render_table.h"
#include "tests/client/sample_jobs.h"

namespace traind {
namespace {

// 19 s after acceptance, with 41 s left.
Moment Now() { return {absl::FromUnixMillis(1796148019120), absl::ZeroDuration()}; }

std::string Lines(int width, int rows = 20) {
  return absl::StrJoin(ProgressLines(RunningJob(), Now(), width, rows), "\n");
}

TEST(ProgressTest, AWideTerminalShowsEverything) {
  EXPECT_EQ(Lines(200),
            "digits-7f3k2a RUNNING  folds 2/5 done  best accuracy 0.9812 (fold 2)  deadline in "
            "41s: on track, 4/5 folds fit\n"
            "fold 3  31%|############............................| 12/40 ep  620/2000 "
            "[00:10<00:22, 60it/s, 3843 samples/s] loss 0.214");
}

// 2,000 steps are those of 40 epochs with all rows.
TEST(ProgressTest, AShareOfTheRowsHasAsManyStepsLess) {
  v1::Job job = RunningJob();
  job.mutable_plan()->set_row_share(0.4);
  EXPECT_TRUE(absl::StrContains(FoldLine(job, job.folds(3), Now(), 200), " 620/800 "));
  EXPECT_TRUE(absl::StrContains(JobReport(job, Now().now, {}),
                                "4 folds, 40 epochs of 40 % of the rows, 1 rank a fold"));
}

TEST(ProgressTest, EightyColumnsLeaveOutTheLeastImportant) {
  EXPECT_EQ(Lines(80),
            "digits-7f3k2a RUNNING  folds 2/5 done  deadline in 41s: on track\n"
            "fold 3  31%|####...........| 12/40 ep  620/2000 [00:10<00:22, 60it/s] loss 0.214");
}

TEST(ProgressTest, FortyColumnsKeepTheBar) {
  EXPECT_EQ(Lines(40),
            "digits-7f3k2a RUNNING  in 41s: on track\n"
            "fold 3  31%|####...........| 12/40 ep");
}

TEST(ProgressTest, NoLineIsWiderThanTheTerminal) {
  for (int width = 20; width <= 220; ++width) {
    for (const std::string& line : ProgressLines(RunningJob(), Now(), width, 20)) {
      EXPECT_LE(DisplayWidth(line), width) << line;
      EXPECT_GT(DisplayWidth(line), 0);
    }
  }
}

TEST(ProgressTest, TheDeadlineCountsDownByItselfAndPasses) {
  Moment moment = Now();
  moment.since_seen = absl::Seconds(11);
  // This machine's clock does not matter once the daemon has sent its own.
  moment.now = absl::UnixEpoch();
  EXPECT_TRUE(absl::StrContains(JobLine(RunningJob(), moment, 0), "deadline in 30s"));
  moment.since_seen = absl::Seconds(42);
  EXPECT_TRUE(absl::StrContains(JobLine(RunningJob(), moment, 0), "deadline passed"));
}

TEST(ProgressTest, TheOutlookComparesTheEstimateWithTheDeadline) {
  v1::Job job = RunningJob();
  EXPECT_EQ(OutlookOf(job), Outlook::kOnTrack);
  job.mutable_estimated_finish()->set_seconds(1796148055);
  EXPECT_EQ(OutlookOf(job), Outlook::kTight);
  job.mutable_estimated_finish()->set_seconds(1796148061);
  EXPECT_EQ(OutlookOf(job), Outlook::kLate);
  job.clear_estimated_finish();
  EXPECT_EQ(OutlookOf(job), Outlook::kNone);
}

TEST(ProgressTest, WithoutFiguresThereIsStillABar) {
  v1::Job job = RunningJob();
  job.mutable_folds(3)->clear_live();
  EXPECT_EQ(FoldLine(job, job.folds(3), Now(), 60),
            "fold 3  31%|##########.........................| 12/40 ep");
  job.mutable_folds(3)->clear_progress();
  EXPECT_EQ(FoldLine(job, job.folds(3), Now(), 60),
            "fold 3   0%|........................................| 0/0 ep");
}

TEST(ProgressTest, SlowStepsAreSecondsEach) {
  v1::Job job = RunningJob();
  job.mutable_folds(3)->mutable_live()->set_steps_per_s(0.25);
  job.mutable_folds(3)->mutable_live()->set_samples_per_s(2.5);
  EXPECT_TRUE(absl::StrContains(FoldLine(job, job.folds(3), Now(), 200),
                                "[00:10<1:32:00, 4s/it, 2.5 samples/s]"));
}

TEST(ProgressTest, AWaitingJobSaysWhatFor) {
  v1::Job job;
  job.set_id("a-1");
  job.set_state(v1::JOB_STATE_QUEUED);
  job.set_pending_reason(v1::PENDING_REASON_RESOURCES);
  job.set_queue_position(2);
  EXPECT_EQ(JobLine(job, Now(), 0), "a-1 QUEUED  waits for RESOURCES, place 2  no deadline");
  job.set_waits_for("4 slots on one host; 2 free");
  job.mutable_expected_start()->set_seconds(absl::ToUnixSeconds(Now().now) + 60);
  const std::string clock = ClockText(job.expected_start(), Now().now);
  EXPECT_EQ(JobLine(job, Now(), 0),
            "a-1 QUEUED  waits for RESOURCES (4 slots on one host; 2 free), place 2, expected " +
                clock + "  no deadline");
}

TEST(ProgressTest, MoreFoldsThanRowsAreCounted) {
  v1::Job job = RunningJob();
  for (v1::Fold& fold : *job.mutable_folds()) fold.set_state(v1::TASK_STATE_RUNNING);
  const auto lines = ProgressLines(job, Now(), 80, 3);
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_EQ(lines[3], "and 3 folds more");
}

TEST(ProgressTest, ThePlainLineIsOneLine) {
  EXPECT_EQ(PlainLine(RunningJob(), Now()),
            "digits-7f3k2a RUNNING  folds 2/5 done  best accuracy 0.9812 (fold 2)  deadline in "
            "41s: on track, 4/5 folds fit; fold 3 12/40 ep  620/2000 [00:10<00:22, 60it/s, 3843 "
            "samples/s] loss 0.214");
}

TEST(ProgressTest, ControlBytesOfNamesAreShownNotObeyed) {
  v1::Job job = RunningJob();
  job.set_id("a\x1b[2Jb");
  job.mutable_scores()->set_metric("x\x07");
  const std::string line = PlainLine(job, Now());
  EXPECT_EQ(line.find('\x1b'), std::string::npos) << line;
  EXPECT_EQ(line.find('\x07'), std::string::npos) << line;
}

TEST(SummaryTest, AnEndedJobExplainsItself) {
  const std::string text = JobSummary(EndedJob(), absl::FromUnixSeconds(1796148042), {});
  for (const char* part :
       {"digits-7f3k2a SUCCEEDED  quality DEGRADED  COMPLETED",
        "41s after acceptance, 18s before the deadline", "4 of 5 answer: 0 1 2 3",
        "accuracy 0.9764 out of fold (not comparable: not every fold is in it), 0.9718 on the "
        "test file, 0.9312 by the floor",
        "B2: 5 folds -> 4 folds, to fit the time",
        "/state/jobs/digits-7f3k2a/current/predictions.csv (355 rows)",
        "column \"x\" is constant"}) {
    EXPECT_TRUE(absl::StrContains(text, part)) << part << "\nis not in\n" << text;
  }
}

v1::JobSpec SpecWith(const std::string& text) {
  v1::JobSpec spec;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &spec)) << text;
  return spec;
}

std::string SummaryWith(const v1::Job& job, const std::string& spec) {
  JobStyle style;
  style.spec = SpecWith(spec);
  return JobSummary(job, absl::Now(), style);
}

TEST(SummaryTest, AJobThatEndsEarlyTellsHowToUseTheRest) {
  v1::Job job = EndedJob();
  job.set_quality(v1::QUALITY_FULL);
  EXPECT_FALSE(absl::StrContains(SummaryWith(job, "model { mlp {} }"), "time left"));
  job.mutable_finished_at()->set_seconds(1796148001);  // after 1.5 s of 60
  const std::string text = SummaryWith(job, "model { mlp {} }");
  EXPECT_TRUE(absl::StrContains(text, "58s of 1m00s were not needed")) << text;
  EXPECT_TRUE(absl::StrContains(
      text, "trainctl submit --from digits-7f3k2a --set train.seeds=20 --budget 1m00s"))
      << text;
  EXPECT_TRUE(absl::StrContains(text, "a spec with `model: auto` or `search`")) << text;
  // Somebody who ends a Job early needs no advice.
  job.set_end_reason(v1::JOB_END_REASON_FINISHED_BY_USER);
  EXPECT_FALSE(absl::StrContains(SummaryWith(job, "model { mlp {} }"), "time left"));
}

TEST(SummaryTest, TheAdviceOnTimeLeftFitsTheSpec) {
  v1::Job job = EndedJob();
  job.set_quality(v1::QUALITY_FLOOR);
  job.mutable_finished_at()->set_seconds(1796148001);
  for (const char* spec :
       {"data { image {} } model { cnn {} }", "data { text { columns: 'a' } } model { text {} }",
        "data { volume {} } model { unet3d {} }"}) {
    const std::string text = SummaryWith(job, spec);
    EXPECT_TRUE(absl::StrContains(text, "settings: a spec with `search`")) << text;
    EXPECT_FALSE(absl::StrContains(text, "model: auto")) << text;
  }
  for (const char* spec : {"model { command {} }", "model { automatic {} }",
                           "model { lightgbm {} } search { trials: 5 }"}) {
    EXPECT_FALSE(absl::StrContains(SummaryWith(job, spec), "time left")) << spec;
  }
}

TEST(SummaryTest, ADegradedJobTellsThatAFurtherOneTrainsTheRest) {
  v1::Job job = EndedJob();
  const std::string text = SummaryWith(job, "model { cnn {} }");  // 18 s of 60 are left
  EXPECT_TRUE(absl::StrContains(text,
                                "A further Job trains what was cut: trainctl submit --from "
                                "digits-7f3k2a --budget 1m00s"))
      << text;
  EXPECT_FALSE(absl::StrContains(text, "not needed")) << text;
  job.mutable_finished_at()->set_seconds(1796148056);
  EXPECT_FALSE(absl::StrContains(SummaryWith(job, "model { cnn {} }"), "time left"));
}

TEST(SummaryTest, AJobWithoutATestFileSaysSo) {
  v1::Job job = EndedJob();
  job.clear_predictions();
  job.mutable_scores()->set_comparable(true);
  const std::string text = JobSummary(job, absl::FromUnixSeconds(1796148042), {});
  EXPECT_TRUE(absl::StrContains(text, "none was asked for")) << text;
  EXPECT_FALSE(absl::StrContains(text, "not comparable")) << text;
}

TEST(SummaryTest, AJobThatPredictsNamesTheJobWhoseFoldsAnswer) {
  v1::Job job = EndedJob();
  job.clear_folds();
  job.set_models_from("digits-other");
  const std::string text = JobSummary(job, absl::FromUnixSeconds(1796148042), {});
  EXPECT_TRUE(absl::StrContains(text, "of digits-other answer: 0 1 2 3")) << text;
  EXPECT_TRUE(absl::StrContains(text, "  digits-other: accuracy 0.9764 out of fold")) << text;
}

TEST(TableTest, ColumnsLineUpAndControlBytesAreShown) {
  TextTable table({"A", "B"});
  table.Add({"\xc3\xa9\xc3\xa9\xc3\xa9", "x"});
  table.Add({"", "y\x1b"});
  EXPECT_EQ(table.ToString(), "A    B\n\xc3\xa9\xc3\xa9\xc3\xa9  x\n-    y\\x1b\n");
}

// Time that is left is given back, but B9 also takes a trial away that is of no use.
TEST(DecisionTextTest, B9TellsItsCauseUnlessThatIsArithmetic) {
  v1::Decision decision;
  decision.set_rule("B9");
  decision.set_from("trial 6 on all folds");
  decision.set_to("trial 6 gets no more folds");
  decision.set_cause("it is clearly worse on the same folds");
  EXPECT_EQ(
      DecisionText(decision, /*verbose=*/false),
      "B9: trial 6 on all folds -> trial 6 gets no more folds, because it is clearly worse on "
      "the same folds");
  decision.set_cause("2 s/epoch x 4 epochs = 8 s");
  EXPECT_EQ(DecisionText(decision, /*verbose=*/false),
            "B9: trial 6 on all folds -> trial 6 gets no more folds, because time is left");
}

TEST(JobReportTextTest, TheMostImportantColumnsAreTold) {
  v1::Job job = EndedJob();
  for (int i = 0; i < 12; ++i) {
    v1::ColumnImportance& of = *job.mutable_report()->add_importance();
    of.set_column(absl::StrCat("column-", i));
    of.set_drop(0.1 / (i + 1));
    if (i > 0) of.set_error(0.01);
  }
  const auto report = [&job](bool verbose) {
    JobStyle style;
    style.verbose = verbose;
    return JobReport(job, absl::FromUnixSeconds(1796148042), style);
  };
  const std::string text = report(false);
  EXPECT_TRUE(absl::StrContains(text, "importance  column-0  0.1\n")) << text;
  EXPECT_TRUE(absl::StrContains(text, "column-1  0.05 +- 0.01\n")) << text;
  EXPECT_TRUE(absl::StrContains(text, "... 2 more: trainctl get --verbose")) << text;
  EXPECT_FALSE(absl::StrContains(text, "column-10"));
  EXPECT_TRUE(absl::StrContains(report(true), "column-11"));
}

TEST(JobReportTextTest, FilesThatTravelledAreToldAndWithVerboseOfEachAttempt) {
  v1::Job job = EndedJob();
  const auto report = [&job](bool verbose) {
    JobStyle style;
    style.verbose = verbose;
    return JobReport(job, absl::FromUnixSeconds(1796148042), style);
  };
  EXPECT_FALSE(absl::StrContains(report(true), "transfers"));
  v1::Transfers& first = *job.mutable_attempts(0)->mutable_transfers();
  first.set_fetched_bytes(3 << 29);
  first.set_fetch_s(12);
  v1::AttemptSummary& second = *job.add_attempts();
  second.set_task("fold-1");
  second.set_worker("w2");
  second.mutable_transfers()->set_sent_bytes(2 << 20);
  second.mutable_transfers()->set_send_s(0.5);
  const std::string text = report(false);
  EXPECT_TRUE(absl::StrContains(
      text, "transfers   fetched 1.5 GiB in 12s, sent 2.0 MiB in 500ms by all Attempts together\n"))
      << text;
  EXPECT_FALSE(absl::StrContains(text, "fold-1 on w2"));
  EXPECT_TRUE(absl::StrContains(report(true), "fold-1 on w2: sent 2.0 MiB in 500ms\n"));
}

TEST(JobReportTextTest, VerboseTellsEachAnswerThatStood) {
  v1::Job job = EndedJob();
  v1::Answer& floor = *job.mutable_report()->add_answers();
  floor.set_number(1);
  floor.set_at_s(0.25);
  floor.set_quality(v1::QUALITY_FLOOR);
  floor.set_oof(0.9312);
  floor.set_comparable(true);
  v1::Answer& next = *job.mutable_report()->add_answers();
  next.set_number(3);
  next.set_at_s(12.5);
  next.set_quality(v1::QUALITY_DEGRADED);
  next.set_oof(0.97641);
  next.set_test(0.97183);
  next.set_models(4);
  const auto report = [&job](bool verbose) {
    JobStyle style;
    style.verbose = verbose;
    return JobReport(job, absl::FromUnixSeconds(1796148042), style);
  };
  const std::string text = report(true);
  EXPECT_TRUE(
      absl::StrContains(text, "answers      1     250ms  FLOOR     0.9312 out of fold, the floor"))
      << text;
  EXPECT_TRUE(absl::StrContains(text,
                                " 3       12s  DEGRADED  0.9764 out of fold (of a part of the "
                                "folds), 0.9718 on the test file, "
                                "4 models"))
      << text;
  EXPECT_FALSE(absl::StrContains(report(false), "answers"));
}

TEST(JobSummaryTest, OfManyDecisionsTheFirstAndTheLastAreShown) {
  v1::Job job = EndedJob();
  job.clear_decisions();
  for (int i = 0; i < 30; ++i) {
    v1::Decision& decision = *job.add_decisions();
    decision.set_rule("B9");
    decision.set_from(absl::StrCat("from-", i, "."));
    decision.set_to("more");
  }
  const auto summary = [&job](bool verbose) {
    JobStyle style;
    style.verbose = verbose;
    return JobSummary(job, absl::FromUnixSeconds(1796148042), style);
  };
  const std::string text = summary(false);
  for (const char* shown : {"from-0.", "from-3.", "from-26.", "from-29.", "... 22 more"}) {
    EXPECT_TRUE(absl::StrContains(text, shown)) << shown << " in\n" << text;
  }
  EXPECT_FALSE(absl::StrContains(text, "from-4."));
  EXPECT_FALSE(absl::StrContains(text, "from-25."));
  EXPECT_TRUE(absl::StrContains(summary(true), "from-15."));
  job.mutable_decisions()->DeleteSubrange(9, 21);
  EXPECT_TRUE(absl::StrContains(summary(false), "from-4.")) << "one line is not worth a line";
}

}  // namespace
}  // namespace traind
