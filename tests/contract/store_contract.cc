#include "tests/contract/store_contract.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>
#include <absl/time/time.h>

#include <limits>
#include <utility>

namespace traind {
namespace {

const absl::Time kStart = absl::FromUnixMillis(1'795'000'000'123);

std::string Text(const Member& m) {
  return absl::StrJoin(std::make_tuple(m.fold, m.attempt, m.complete, m.score, m.epochs_done, m.oof,
                                       m.oof_sha256, m.test, m.test_sha256),
                       "|");
}
std::string Text(const Checkpoint& c) {
  return absl::StrJoin(std::make_tuple(c.attempt, c.fold, c.step, c.epoch, c.manifest, c.sha256,
                                       c.bytes, c.best_metric, absl::FormatTime(c.at)),
                       "|");
}
template <typename T>
std::string Text(const std::optional<T>& value) {
  return value ? absl::StrCat(*value) : "none";
}

Task& Fold(Job& job, int fold) { return job.tasks[1 + fold]; }

Checkpoint CheckpointOf(int64_t attempt, int fold, int64_t step) {
  Checkpoint c;
  c.attempt = attempt;
  c.fold = fold;
  c.step = step;
  c.epoch = 1.5;
  c.manifest = absl::StrCat("jobs/a/attempts/", attempt, "/checkpoint-", step, ".json");
  c.sha256 = "feed";
  c.bytes = 1234;
  c.best_metric = 0.875;
  c.at = kStart + absl::Seconds(step);
  return c;
}

Member MemberOf(int64_t attempt, int fold) {
  Member m;
  m.fold = fold;
  m.attempt = attempt;
  m.complete = true;
  m.score = 0.9;
  m.epochs_done = 12;
  m.oof = absl::StrCat("attempts/", attempt, "/oof.npy");
  m.oof_sha256 = "aa";
  m.test = absl::StrCat("attempts/", attempt, "/test.npy");
  m.test_sha256 = "bb";
  return m;
}

// The Job with fold's Attempt running.
Job Started(const Job& job, int fold, int64_t attempt) {
  Job next = Next(job);
  next.state = JobState::kRunning;
  Fold(next, fold).state = TaskState::kRunning;
  Fold(next, fold).attempt = attempt;
  ++Fold(next, fold).attempts;
  Attempt& a = next.attempts.emplace_back();
  a.id = attempt;
  a.fold = fold;
  a.worker = "w1";
  a.slots = {0, 1};
  a.started_at = kStart + absl::Seconds(attempt);
  return next;
}

MetricPoint Metric(const std::string& job, int64_t step) {
  MetricPoint p;
  p.job = job;
  p.at = kStart;
  p.step = step;
  p.epoch = 0.25;
  p.name = "train_loss";
  p.value = 1.0 / static_cast<double>(step);
  return p;
}

Job Ended(const Job& job, JobState state) {
  Job next = Next(job);
  next.state = state;
  next.end_reason = JobEndReason::kCompleted;
  next.end_message = "done";
  next.finished_at = kStart + absl::Minutes(1);
  return next;
}

// A Job in which every stored field differs from its default.
Job FullJob() {
  Job job = NewJob("full-1");
  job.spec_text = "name: full\n# it\xe2\x80\x99s \"quoted\"\n";
  job.spec.labels = {{"team", "a"}, {"stage", "prod"}};
  job.spec.budget = absl::Seconds(90);
  job.spec.deadline = kStart + absl::Hours(2);
  job.spec.policy = Policy::kFixed;
  job.spec.shares = {0.7, 0.3, 0.1, 0.6};
  job.spec.device = "cuda";
  job.spec.precision = "bf16";
  job.spec.batch = 64;
  job.spec.priority = -3;
  job.spec.higher_is_better = false;
  job.warnings = {"column x is ignored", "another, \"odd\" one"};
  job.deadline = kStart + absl::Seconds(90);
  job = Started(job, 0, 7);
  job.started_at = kStart + absl::Milliseconds(250);
  job.finish_requested = true;
  job.cancel_requested = true;
  job.table = {"cache/k.table", "c0ffee", 1000, 100, 9, 3};
  job.floor_model = "logistic";
  job.floor_score = 0.71;
  Task& task = Fold(job, 0);
  task.failures = 1;
  task.losses = 2;
  task.not_before = kStart + absl::Seconds(3);
  task.epochs_planned = 20;
  task.epochs_done = 12.5;
  task.score = 0.93;
  task.member = MemberOf(7, 0);
  task.checkpoint = CheckpointOf(7, 0, 40);
  task.message = "stopped by the clock";
  task.measured = {0.001, 0.002, 0.3, 0.4, 5.5, 321};
  Attempt& attempt = job.attempts.back();
  attempt.ended_at = kStart + absl::Seconds(30);
  attempt.end_reason = AttemptEndReason::kStoppedInTime;
  attempt.message = "signal 9";
  Plan plan;
  plan.revision = 1;
  plan.folds = 2;
  plan.epochs = 20;
  plan.step_s = 0.001;
  plan.estimate = absl::Seconds(44);
  plan.reserve = absl::Seconds(9);
  plan.at = kStart;
  job.plans = {plan, Plan{2, 2, 12, 2, 3, {}, {}, absl::Seconds(8), kStart + absl::Seconds(1)}};
  job.decisions = {{kStart, "B2", "estimate 100 s", "5 folds", "3 folds"},
                   {kStart + absl::Seconds(1), "user", "Finish", "train", "predict"}};
  PublishedPrediction p;
  p.number = 3;
  p.path = "jobs/full-1/prediction-3/predictions.csv";
  p.sha256 = "abc";
  p.bytes = 99;
  p.rows = 100;
  p.quality = Quality::kDegraded;
  p.members = {MemberOf(7, 0)};
  p.left_out = {1};
  p.oof_score = 0.92;
  p.comparable = true;
  p.test_score = 0.91;
  p.floor_score = 0.7;
  p.at = kStart + absl::Seconds(20);
  job.prediction = p;
  return job;
}

}  // namespace

Job NewJob(const std::string& id, int folds) {
  Job job;
  job.id = id;
  job.spec.name = id.substr(0, id.find('-'));
  job.spec.metric = "accuracy";
  job.spec.folds = folds;
  job.spec.train_bytes = 4096;
  job.spec_json = absl::StrCat("{\"name\":\"", job.spec.name, "\"}");
  job.spec_sha256 = "5ec";
  job.accepted_at = kStart;
  job.version = 1;
  for (int i = 0; i <= folds; ++i) {
    Task& task = job.tasks.emplace_back();
    task.kind = i == 0 ? TaskKind::kPrepare : TaskKind::kTrain;
    task.fold = i - 1;
  }
  return job;
}

Job Next(const Job& job) {
  Job next = job;
  ++next.version;
  return next;
}

Mutations Change(std::vector<Job> jobs) {
  Mutations m;
  m.durable = true;
  for (Job& job : jobs) m.jobs.push_back(std::make_shared<const Job>(std::move(job)));
  return m;
}

std::string Describe(const Job& job) {
  std::string text = absl::StrCat(
      job.id, " owner=", job.owner, " request=", job.request_id, " spec=", job.spec_sha256, " ",
      job.spec_json, " ", job.spec_text, " state=", static_cast<int>(job.state),
      " end=", static_cast<int>(job.end_reason), " ", job.end_message, " at ",
      absl::FormatTime(job.accepted_at), " ", absl::FormatTime(job.started_at), " ");
  absl::StrAppend(&text, absl::FormatTime(job.deadline), " ", absl::FormatTime(job.finished_at),
                  job.finish_requested, job.cancel_requested, " floor=", job.floor_model, " ",
                  Text(job.floor_score), " warnings=", absl::StrJoin(job.warnings, ";"),
                  " version=", job.version, "\n");
  const Spec& s = job.spec;
  absl::StrAppend(&text, "spec ", s.name, " ", s.metric, s.higher_is_better, " ", s.folds, " ",
                  s.epochs, " ", s.patience, " ", s.slots, " ", s.device, " ", s.batch, " ");
  absl::StrAppend(&text, s.precision, " ", absl::FormatDuration(s.checkpoint_every), " ",
                  s.priority, " ", absl::StrJoin(s.labels, ",", absl::PairFormatter("=")), " ",
                  s.has_test, " ", s.train_bytes, " ", s.test_bytes, " ");
  absl::StrAppend(&text, s.budget ? absl::FormatDuration(*s.budget) : "none", " ",
                  s.deadline ? absl::FormatTime(*s.deadline) : "none", " ",
                  static_cast<int>(s.policy), " ", s.shares.plan, " ", s.shares.first_fold, " ",
                  s.shares.reserve, " ", s.shares.stop, "\n");
  const TableInfo& t = job.table;
  absl::StrAppend(&text, "table ", t.table, " ", t.content_sha256, " ", t.train_rows, " ",
                  t.test_rows, " ", t.features, " ", t.classes, "\n");
  for (const Task& task : job.tasks) {
    absl::StrAppend(&text, "task ", static_cast<int>(task.kind), " ", task.fold, " ", task.trial,
                    " ", static_cast<int>(task.state), " ", task.attempt, " ", task.attempts, " ",
                    task.failures, " ", task.losses, " ", absl::FormatTime(task.not_before));
    absl::StrAppend(&text, " ", task.epochs_planned, " ", task.epochs_done, " ", Text(task.score),
                    " ", task.member ? Text(*task.member) : "none", " ",
                    task.checkpoint ? Text(*task.checkpoint) : "none", " ", task.message);
    const Measured& m = task.measured;
    absl::StrAppend(&text, " ", m.step_s, " ", m.step_p90_s, " ", m.evaluate_s, " ", m.predict_s,
                    " ", m.epoch_s, " ", m.steps_per_epoch, "\n");
  }
  for (const Plan& p : job.plans) {
    absl::StrAppend(&text, "plan ", p.revision, " ", p.folds, " ", p.epochs, " ", p.ranks, " ",
                    p.parallel_folds, " ", Text(p.step_s), " ",
                    p.estimate ? absl::FormatDuration(*p.estimate) : "none", " ",
                    absl::FormatDuration(p.reserve), " ", absl::FormatTime(p.at), "\n");
  }
  for (const Decision& d : job.decisions) {
    absl::StrAppend(&text, "decision ", absl::FormatTime(d.at), " ", d.rule, " ", d.cause, " ",
                    d.from, " ", d.to, "\n");
  }
  for (const Attempt& a : job.attempts) {
    absl::StrAppend(&text, "attempt ", a.id, " ", static_cast<int>(a.kind), " ", a.fold, " ",
                    a.worker, " ", absl::StrJoin(a.slots, ","), " ");
    absl::StrAppend(&text, absl::FormatTime(a.started_at), " ", absl::FormatTime(a.ended_at), " ",
                    static_cast<int>(a.end_reason), " ", a.message, "\n");
  }
  if (job.prediction) {
    const PublishedPrediction& p = *job.prediction;
    absl::StrAppend(&text, "prediction ", p.number, " ", p.path, " ", p.sha256, " ", p.bytes, " ",
                    p.rows, " ", static_cast<int>(p.quality), " ", absl::StrJoin(p.left_out, ","),
                    " ", Text(p.oof_score), p.comparable, " ");
    absl::StrAppend(&text, Text(p.test_score), " ", Text(p.floor_score), " ",
                    absl::FormatTime(p.at));
    for (const Member& m : p.members) absl::StrAppend(&text, " {", Text(m), "}");
  }
  return text;
}

TEST_P(StoreContractTest, AnEmptyStoreHasNothing) {
  const auto snapshot = store_->LoadSnapshot();
  ASSERT_TRUE(snapshot.ok()) << snapshot.status();
  EXPECT_TRUE(snapshot->active.empty());
  EXPECT_EQ(snapshot->last_attempt, 0);
  EXPECT_EQ(snapshot->last_seen, absl::InfinitePast());
  EXPECT_TRUE(absl::IsNotFound(store_->GetJob("x").status()));
  EXPECT_TRUE(absl::IsNotFound(store_->FindByRequest("local", "x").status()));
  EXPECT_TRUE(absl::IsNotFound(store_->RecordedSpeed("x", 1).status()));
  EXPECT_TRUE(store_->ListJobs({})->jobs.empty());
}

TEST_P(StoreContractTest, EveryFieldOfAJobComesBack) {
  const Job job = FullJob();
  ASSERT_EQ(store_->Commit(Change({job})), absl::OkStatus());
  EXPECT_EQ(Describe(store_->GetJob(job.id).value()), Describe(job));
  OpenAgain();
  EXPECT_EQ(Describe(store_->GetJob(job.id).value()), Describe(job));
  const auto snapshot = store_->LoadSnapshot();
  ASSERT_TRUE(snapshot.ok()) << snapshot.status();
  ASSERT_EQ(snapshot->active.size(), 1u);
  EXPECT_EQ(Describe(snapshot->active[0]), Describe(job));
}

TEST_P(StoreContractTest, ChangesOfEveryPartAreWritten) {
  Job job = NewJob("full-1");
  ASSERT_EQ(store_->Commit(Change({job})), absl::OkStatus());
  Job full = FullJob();
  full.spec = job.spec;  // what is fixed at acceptance stays
  full.spec_text = job.spec_text;
  ASSERT_EQ(store_->Commit(Change({full})), absl::OkStatus());
  EXPECT_EQ(Describe(store_->GetJob(job.id).value()), Describe(full));

  Job later = Next(full);
  Fold(later, 1).state = TaskState::kDropped;
  Fold(later, 0).score = 0.95;
  Fold(later, 0).member->score = 0.95;
  later.attempts[0].message = "ended";
  later.decisions.push_back({kStart, "B5", "a", "b", "c"});
  later.prediction->quality = Quality::kFull;
  OpenAgain();
  ASSERT_TRUE(store_->LoadSnapshot().ok());
  ASSERT_EQ(store_->Commit(Change({later})), absl::OkStatus());
  EXPECT_EQ(Describe(store_->GetJob(job.id).value()), Describe(later));
}

TEST_P(StoreContractTest, ATurnMayHoldSeveralVersionsOfAJob) {
  const Job first = NewJob("a-1");
  ASSERT_EQ(store_->Commit(Change({first, Next(first), Next(Next(first))})), absl::OkStatus());
  EXPECT_EQ(store_->GetJob("a-1")->version, 3);
}

TEST_P(StoreContractTest, ATerminalJobNeverChanges) {
  for (const JobState state : {JobState::kSucceeded, JobState::kFailed, JobState::kCancelled}) {
    const Job job = NewJob(absl::StrCat("a-", static_cast<int>(state)));
    const Job ended = Ended(job, state);
    ASSERT_EQ(store_->Commit(Change({job})), absl::OkStatus());
    ASSERT_EQ(store_->Commit(Change({ended})), absl::OkStatus());
    EXPECT_TRUE(absl::IsAborted(store_->Commit(Change({Next(ended)}))));
    EXPECT_EQ(Describe(store_->GetJob(job.id).value()), Describe(ended));
  }
  EXPECT_TRUE(store_->LoadSnapshot()->active.empty());
}

TEST_P(StoreContractTest, AJobsVersionGrows) {
  const Job job = Next(NewJob("a-1"));
  ASSERT_EQ(store_->Commit(Change({job})), absl::OkStatus());
  EXPECT_TRUE(absl::IsAborted(store_->Commit(Change({job}))));
  EXPECT_TRUE(absl::IsAborted(store_->Commit(Change({NewJob("a-1")}))));
  EXPECT_EQ(store_->Commit(Change({Next(job)})), absl::OkStatus());
}

TEST_P(StoreContractTest, ARefusedTurnLeavesNothingBehind) {
  const Job job = NewJob("a-1");
  ASSERT_EQ(store_->Commit(Change({job})), absl::OkStatus());
  Mutations m = Change({NewJob("b-1"), Next(job), job});
  m.last_attempt = 9;
  m.last_seen = kStart;
  EXPECT_TRUE(absl::IsAborted(store_->Commit(m)));
  EXPECT_TRUE(absl::IsNotFound(store_->GetJob("b-1").status()));
  EXPECT_EQ(store_->GetJob("a-1")->version, 1);
  EXPECT_EQ(store_->LoadSnapshot()->last_attempt, 0);
  // And what was refused does not spoil the next.
  EXPECT_EQ(store_->Commit(Change({NewJob("b-1"), Next(job)})), absl::OkStatus());
}

TEST_P(StoreContractTest, LastAttemptNeverShrinks) {
  Mutations m;
  m.last_attempt = 5;
  ASSERT_EQ(store_->Commit(m), absl::OkStatus());
  m.last_attempt = 4;
  EXPECT_TRUE(absl::IsAborted(store_->Commit(m)));
  m.last_attempt = 0;
  m.last_seen = kStart;
  ASSERT_EQ(store_->Commit(m), absl::OkStatus());
  OpenAgain();
  EXPECT_EQ(store_->LoadSnapshot()->last_attempt, 5);
  EXPECT_EQ(store_->LoadSnapshot()->last_seen, kStart);
}

TEST_P(StoreContractTest, ACheckpointOfAStaleAttemptIsAborted) {
  const Job job = Started(NewJob("a-1"), 0, 1);
  ASSERT_EQ(store_->Commit(Change({job})), absl::OkStatus());
  Mutations m = Change({});
  m.checkpoints = {{"a-1", CheckpointOf(1, 0, 10)}};
  ASSERT_EQ(store_->Commit(m), absl::OkStatus());
  ASSERT_EQ(store_->Commit(Change({Started(job, 0, 2)})), absl::OkStatus());
  m.checkpoints = {{"a-1", CheckpointOf(1, 0, 20)}};
  EXPECT_TRUE(absl::IsAborted(store_->Commit(m)));
  m.checkpoints = {{"a-1", CheckpointOf(3, 0, 20)}};
  EXPECT_TRUE(absl::IsAborted(store_->Commit(m)));
  m.checkpoints = {{"a-1", CheckpointOf(2, 0, 20)}};
  EXPECT_EQ(store_->Commit(m), absl::OkStatus());
  const auto stored = store_->ListCheckpoints("a-1");
  ASSERT_EQ(stored->size(), 2u);
  EXPECT_EQ(Text(stored->at(0)), Text(CheckpointOf(1, 0, 10)));
  EXPECT_EQ(Text(stored->at(1)), Text(CheckpointOf(2, 0, 20)));
}

TEST_P(StoreContractTest, PredictionsOfAStaleAttemptAreAborted) {
  const Job running = Started(NewJob("a-1"), 0, 2);
  ASSERT_EQ(store_->Commit(Change({running})), absl::OkStatus());
  Job job = Next(running);
  Fold(job, 0).member = MemberOf(1, 0);
  EXPECT_TRUE(absl::IsAborted(store_->Commit(Change({job}))));
  Fold(job, 0).member = MemberOf(2, 0);
  EXPECT_EQ(store_->Commit(Change({job})), absl::OkStatus());
  // An older member may stay when a newer Attempt starts.
  EXPECT_EQ(store_->Commit(Change({Started(job, 0, 3)})), absl::OkStatus());
}

TEST_P(StoreContractTest, WhatEndedAndRestartedWithinATurnIsNoStaleWriter) {
  const Job running = Started(NewJob("a-1"), 0, 1);
  ASSERT_EQ(store_->Commit(Change({running})), absl::OkStatus());
  Job job = Started(running, 0, 2);
  Fold(job, 0).member = MemberOf(1, 0);
  Fold(job, 0).checkpoint = CheckpointOf(1, 0, 10);
  Mutations m = Change({job});
  m.checkpoints = {{"a-1", CheckpointOf(1, 0, 10)}};
  EXPECT_EQ(store_->Commit(m), absl::OkStatus());
  EXPECT_EQ(Describe(store_->GetJob("a-1").value()), Describe(job));
}

TEST_P(StoreContractTest, ACheckpointToldTwiceIsStoredOnce) {
  ASSERT_EQ(store_->Commit(Change({Started(NewJob("a-1"), 0, 1)})), absl::OkStatus());
  Mutations m = Change({});
  m.checkpoints = {{"a-1", CheckpointOf(1, 0, 10)}, {"a-1", CheckpointOf(1, 0, 10)}};
  ASSERT_EQ(store_->Commit(m), absl::OkStatus());
  ASSERT_EQ(store_->Commit(m), absl::OkStatus());
  EXPECT_EQ(store_->ListCheckpoints("a-1")->size(), 1u);
}

TEST_P(StoreContractTest, RequestIdsAreUniquePerOwner) {
  Job a = NewJob("a-1"), b = NewJob("b-1"), other = NewJob("c-1");
  a.request_id = b.request_id = other.request_id = "r1";
  other.owner = "somebody";
  ASSERT_EQ(store_->Commit(Change({a, other})), absl::OkStatus());
  EXPECT_TRUE(absl::IsAborted(store_->Commit(Change({b}))));
  EXPECT_EQ(store_->FindByRequest("local", "r1")->id, "a-1");
  EXPECT_EQ(store_->FindByRequest("somebody", "r1")->id, "c-1");
  EXPECT_TRUE(absl::IsNotFound(store_->FindByRequest("nobody", "r1").status()));
  // Without a request id there is nothing to be unique.
  EXPECT_EQ(store_->Commit(Change({NewJob("d-1"), NewJob("e-1")})), absl::OkStatus());
  EXPECT_TRUE(absl::IsNotFound(store_->FindByRequest("local", "").status()));
}

TEST_P(StoreContractTest, FindByNameGivesTheNewestTwo) {
  ASSERT_EQ(store_->Commit(Change({NewJob("a-1"), NewJob("a-2"), NewJob("b-1")})),
            absl::OkStatus());
  ASSERT_EQ(store_->Commit(Change({NewJob("a-3")})), absl::OkStatus());
  EXPECT_EQ(*store_->FindByName("a"), (std::vector<std::string>{"a-3", "a-2"}));
  EXPECT_EQ(*store_->FindByName("b"), (std::vector<std::string>{"b-1"}));
  EXPECT_TRUE(store_->FindByName("c")->empty());
}

TEST_P(StoreContractTest, ListPagesAreNewestFirstWithoutGapOrRepetition) {
  for (int i = 0; i < 7; ++i) {
    Job job = Started(NewJob(absl::StrCat("a-", i)), 0, 10 + i);
    job.decisions.push_back({kStart, "B2", "a", "b", "c"});
    ASSERT_EQ(store_->Commit(Change({job})), absl::OkStatus());
  }
  JobFilter filter;
  filter.limit = 3;
  std::vector<std::string> ids;
  int pages = 0;
  do {
    const auto page = store_->ListJobs(filter);
    ASSERT_TRUE(page.ok()) << page.status();
    for (const Job& job : page->jobs) {
      ids.push_back(job.id);
      EXPECT_TRUE(job.decisions.empty() && job.attempts.empty());
      EXPECT_EQ(job.tasks.size(), 3u);
    }
    filter.page_token = page->next_page_token;
    // A Job that comes in between does not shift the pages.
    ASSERT_EQ(store_->Commit(Change({NewJob(absl::StrCat("new-", pages))})), absl::OkStatus());
  } while (!filter.page_token.empty() && ++pages < 10);
  EXPECT_EQ(absl::StrJoin(ids, " "), "a-6 a-5 a-4 a-3 a-2 a-1 a-0");
  filter.page_token = "nonsense";
  EXPECT_TRUE(absl::IsInvalidArgument(store_->ListJobs(filter).status()));
}

TEST_P(StoreContractTest, ListFiltersByStateAndByAllLabels) {
  for (int i = 0; i < 6; ++i) {
    Job job = NewJob(absl::StrCat("a-", i));
    job.spec.labels["parity"] = i % 2 ? "odd" : "even";
    if (i >= 2) job.spec.labels["big"] = "yes";
    ASSERT_EQ(store_->Commit(Change({job})), absl::OkStatus());
    if (i == 5) {
      ASSERT_EQ(store_->Commit(Change({Ended(job, JobState::kFailed)})), absl::OkStatus());
    }
  }
  const auto list = [&](JobFilter filter) {
    std::vector<std::string> ids;
    const JobPage page = store_->ListJobs(filter).value();
    for (const Job& job : page.jobs) ids.push_back(job.id);
    return absl::StrJoin(ids, " ");
  };
  JobFilter filter;
  filter.labels = {{"parity", "odd"}};
  EXPECT_EQ(list(filter), "a-5 a-3 a-1");
  filter.labels["big"] = "yes";
  EXPECT_EQ(list(filter), "a-5 a-3");
  filter.limit = 1;
  EXPECT_EQ(list(filter), "a-5");
  filter.page_token = store_->ListJobs(filter)->next_page_token;
  EXPECT_EQ(list(filter), "a-3");
  filter = {};
  filter.states = {JobState::kFailed, JobState::kCancelled};
  EXPECT_EQ(list(filter), "a-5");
  filter.states = {JobState::kQueued};
  filter.labels = {{"parity", "even"}};
  EXPECT_EQ(list(filter), "a-4 a-2 a-0");
}

TEST_P(StoreContractTest, MetricsAreNumberedPerJobAndResume) {
  ASSERT_EQ(store_->Commit(Change({NewJob("a-1"), NewJob("b-1")})), absl::OkStatus());
  Mutations m;
  m.metrics = {Metric("a-1", 1), Metric("b-1", 1), Metric("a-1", 2)};
  ASSERT_EQ(store_->Commit(m), absl::OkStatus());
  OpenAgain();
  ASSERT_TRUE(store_->LoadSnapshot().ok());
  m.metrics = {Metric("a-1", 4)};
  m.metrics[0].value = std::numeric_limits<double>::quiet_NaN();
  ASSERT_EQ(store_->Commit(m), absl::OkStatus());
  auto metrics = store_->GetMetrics("a-1", 0, 100).value();
  ASSERT_EQ(metrics.size(), 3u);
  EXPECT_EQ(metrics[1].sequence, 2);
  EXPECT_EQ(metrics[1].point.step, 2);
  EXPECT_EQ(metrics[1].point.name, "train_loss");
  EXPECT_EQ(metrics[1].point.value, 0.5);
  EXPECT_EQ(metrics[2].sequence, 3);
  EXPECT_TRUE(std::isnan(metrics[2].point.value));
  EXPECT_EQ(store_->GetMetrics("a-1", 1, 1)->at(0).sequence, 2);
  EXPECT_EQ(store_->GetMetrics("b-1", 0, 100)->size(), 1u);
  EXPECT_TRUE(store_->GetMetrics("a-1", 3, 100)->empty());
}

TEST_P(StoreContractTest, RecordedSpeedPrefersTheSameBytesThenTheSameSize) {
  const auto done = [&](const std::string& id, const std::string& content, double step_s,
                        JobState state) {
    Job job = NewJob(id);
    job.table.table = "cache/x.table";
    job.table.content_sha256 = content;
    Fold(job, 0).measured.step_s = step_s;
    ASSERT_EQ(store_->Commit(Change({job})), absl::OkStatus());
    ASSERT_EQ(store_->Commit(Change({Ended(job, state)})), absl::OkStatus());
  };
  done("a-1", "same", 1, JobState::kSucceeded);
  done("a-2", "same", 2, JobState::kSucceeded);
  done("a-3", "other", 3, JobState::kSucceeded);
  done("a-4", "same", 4, JobState::kFailed);
  done("a-5", "same", 0, JobState::kSucceeded);
  EXPECT_EQ(store_->RecordedSpeed("same", 4096)->step_s, 2);
  EXPECT_EQ(store_->RecordedSpeed("unknown", 4096)->step_s, 3);
  EXPECT_EQ(store_->RecordedSpeed("", 4096)->step_s, 3);
  EXPECT_TRUE(absl::IsNotFound(store_->RecordedSpeed("unknown", 17).status()));
}

TEST_P(StoreContractTest, WhatConcernsAnUnknownJobIsRefused) {
  Mutations m;
  m.metrics = {Metric("nobody", 1)};
  EXPECT_TRUE(absl::IsNotFound(store_->Commit(m)));
  m = {};
  m.events = {{"nobody", kStart, "state", "RUNNING"}};
  EXPECT_TRUE(absl::IsNotFound(store_->Commit(m)));
  m = {};
  m.checkpoints = {{"nobody", CheckpointOf(1, 0, 1)}};
  EXPECT_TRUE(absl::IsNotFound(store_->Commit(m)));
}

}  // namespace traind
