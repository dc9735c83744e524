#include "tests/contract/store_contract.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>

#include <cmath>
#include <limits>
#include <utility>

namespace traind {

TEST_P(StoreContractTest, AnEmptyStoreHasNothing) {
  const auto snapshot = store_->LoadSnapshot();
  ASSERT_TRUE(snapshot.ok()) << snapshot.status();
  EXPECT_TRUE(snapshot->active.empty());
  EXPECT_EQ(snapshot->last_attempt, 0);
  EXPECT_EQ(snapshot->last_seen, absl::InfinitePast());
  EXPECT_TRUE(absl::IsNotFound(store_->GetJob("x").status()));
  EXPECT_TRUE(absl::IsNotFound(store_->FindByRequest("local", "x").status()));
  EXPECT_TRUE(absl::IsNotFound(store_->RecordedSpeed("k", "x", 1).status()));
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
  full.spec = job.spec;  // fields that are fixed at acceptance stay
  full.spec_text = job.spec_text;
  ASSERT_EQ(store_->Commit(Change({full})), absl::OkStatus());
  EXPECT_EQ(Describe(store_->GetJob(job.id).value()), Describe(full));

  Job later = Next(full);
  Fold(later, 1).state = TaskState::kDropped;
  Fold(later, 0).score = 0.95;
  Fold(later, 0).member->score = 0.95;
  later.attempts[0].message = "ended";
  later.attempts[0].first_step = 640;
  later.attempts[0].columns_told = !later.attempts[0].columns_told;
  later.decisions.push_back({kStart, DecisionRule::kB5, "a", "b", "c"});
  later.prediction->quality = Quality::kFull;
  OpenAgain();
  ASSERT_TRUE(store_->LoadSnapshot().ok());
  ASSERT_EQ(store_->Commit(Change({later})), absl::OkStatus());
  EXPECT_EQ(Describe(store_->GetJob(job.id).value()), Describe(later));
}

TEST_P(StoreContractTest, EveryAnswerThatStoodIsListedWithItsTimeAndScore) {
  Job job = FullJob();
  job.state = JobState::kRunning;
  ASSERT_EQ(store_->Commit(Change({job})), absl::OkStatus());
  Job later = Next(job);
  later.prediction->number = 5;
  later.prediction->at += absl::Seconds(7);
  later.prediction->oof_score = std::nullopt;
  later.prediction->members.pop_back();
  ASSERT_EQ(store_->Commit(Change({later, NewJob("b-1")})), absl::OkStatus());
  OpenAgain();
  EXPECT_EQ(store_->ListAnswers(job.id).value(),
            std::vector<Answer>({AnswerOf(*job.prediction), AnswerOf(*later.prediction)}));
  EXPECT_TRUE(store_->ListAnswers("b-1")->empty());
  Mutations step;
  step.clock_step = absl::Hours(2);
  ASSERT_EQ(store_->Commit(step), absl::OkStatus());
  EXPECT_EQ(store_->ListAnswers(job.id)->at(0).at, job.prediction->at + absl::Hours(2));
  EXPECT_EQ(store_->GetJob(job.id)->prediction->at, later.prediction->at + absl::Hours(2));
}

TEST_P(StoreContractTest, SettingsThatAreDrawnOnTheWayAreWritten) {
  Job job = NewJob("search-1");
  job.spec.search = {"tpe", {{"train.ema", "uniform(0, 0.9)"}}, 1};
  job.spec.trials = {{"mlp", "mlp", 20, 5}, {"mlp-1", "mlp", 20, 5}};
  ASSERT_EQ(store_->Commit(Change({job})), absl::OkStatus());
  job = Next(job);
  job.spec.trials[1].settings = std::make_shared<const Settings>(Settings{{"train.ema", "0.5"}});
  job.spec.trials[1].epochs = 9;
  ASSERT_EQ(store_->Commit(Change({job})), absl::OkStatus());
  OpenAgain();
  ASSERT_TRUE(store_->LoadSnapshot().ok());
  EXPECT_EQ(Describe(store_->GetJob(job.id).value()), Describe(job));
}

TEST_P(StoreContractTest, EventsAreReadFromAnyOneOn) {
  Mutations m = Change({NewJob("a-1"), NewJob("b-1")});
  m.events = {{"a-1", kStart, "state", "QUEUED"},
              {"b-1", kStart, "state", "QUEUED"},
              {"a-1", kStart + absl::Seconds(1), "decision", "B2: too long"}};
  ASSERT_EQ(store_->Commit(m), absl::OkStatus());
  OpenAgain();
  m = {};
  m.events = {{"a-1", kStart + absl::Seconds(2), "state", "QUEUED -> PLANNING"}};
  ASSERT_EQ(store_->Commit(m), absl::OkStatus());
  const auto events = store_->GetEvents("a-1", 0, 100);
  ASSERT_TRUE(events.ok()) << events.status();
  ASSERT_EQ(events->size(), 3u);
  EXPECT_EQ((*events)[1].sequence, 2);
  EXPECT_EQ((*events)[1].at, kStart + absl::Seconds(1));
  EXPECT_EQ((*events)[1].kind, "decision");
  EXPECT_EQ((*events)[1].detail, "B2: too long");
  EXPECT_EQ((*events)[2].sequence, 3);
  EXPECT_EQ(store_->GetEvents("a-1", 1, 1)->at(0).sequence, 2);
  EXPECT_TRUE(store_->GetEvents("a-1", 3, 100)->empty());
  EXPECT_TRUE(store_->GetEvents("none", 0, 100)->empty());
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
  // A refused change does not spoil the next one.
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

TEST_P(StoreContractTest, AStepOfTheClockMovesBudgetsAndLeavesTimesOfDay) {
  Job budget = Started(NewJob("budget"), 0, 1);
  budget.spec.budget = absl::Hours(2);
  budget.deadline = budget.accepted_at + absl::Hours(2);
  Fold(budget, 1).not_before = kStart + absl::Seconds(5);
  Job day = NewJob("day");
  day.spec.deadline = day.deadline = kStart + absl::Hours(3);
  Job both = NewJob("both");  // the budget ends first, until the clock goes on by two hours
  both.spec.budget = absl::Hours(2);
  both.spec.deadline = kStart + absl::Hours(3);
  both.deadline = both.accepted_at + absl::Hours(2);
  Job updated = day;
  updated.id = "updated";
  updated.deadline = kStart + absl::Hours(4);
  Job waits = both;  // for others: its budget does not count yet
  waits.id = "waits";
  waits.after = {"both"};
  waits.deadline = *waits.spec.deadline;
  Job waited = budget;
  waited.id = "waited";
  waited.attempts.clear();
  waited.tasks = NewJob("waited").tasks;
  waited.waited = absl::Minutes(10);
  waited.deadline += absl::Minutes(10);
  const Job ended = Ended(NewJob("ended"), JobState::kFailed);
  ASSERT_EQ(
      store_->Commit(Change({budget, day, both, updated, waits, waited, ended, NewJob("endless")})),
      absl::OkStatus());
  Mutations m;
  m.clock_step = absl::Hours(2);
  m.last_seen = kStart + absl::Hours(2);
  ASSERT_EQ(store_->Commit(m), absl::OkStatus());
  OpenAgain();
  const absl::Time moved = kStart + absl::Hours(2);
  const Job after = store_->GetJob("budget").value();
  EXPECT_EQ(after.accepted_at, moved);
  EXPECT_EQ(after.deadline, moved + absl::Hours(2));
  EXPECT_EQ(after.attempts[0].started_at, budget.attempts[0].started_at + absl::Hours(2));
  EXPECT_EQ(after.attempts[0].ended_at, absl::InfiniteFuture());
  EXPECT_EQ(after.tasks[2].not_before, moved + absl::Seconds(5));
  EXPECT_EQ(after.tasks[1].not_before, absl::InfinitePast());
  EXPECT_EQ(store_->GetJob("day")->deadline, kStart + absl::Hours(3));
  EXPECT_EQ(store_->GetJob("both")->deadline, kStart + absl::Hours(3));
  EXPECT_EQ(store_->GetJob("updated")->deadline, kStart + absl::Hours(6));
  EXPECT_EQ(store_->GetJob("waits")->deadline, kStart + absl::Hours(3));
  EXPECT_EQ(store_->GetJob("waited")->deadline, moved + absl::Minutes(130));
  EXPECT_EQ(store_->GetJob("endless")->deadline, absl::InfiniteFuture());
  EXPECT_EQ(Describe(store_->GetJob("ended").value()), Describe(ended));
  EXPECT_EQ(store_->LoadSnapshot()->last_seen, moved);
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
  // Without a request id nothing needs to be unique.
  EXPECT_EQ(store_->Commit(Change({NewJob("d-1"), NewJob("e-1")})), absl::OkStatus());
  EXPECT_TRUE(absl::IsNotFound(store_->FindByRequest("local", "").status()));
  const auto known = store_->FindSubmits({{{"somebody", "r1"}, "d-1"}, {{"local", ""}, "f-1"}});
  ASSERT_EQ(known.size(), 2u);
  ASSERT_TRUE(known[0].ok()) << known[0].status();
  EXPECT_EQ(known[0]->job->id, "c-1");
  EXPECT_TRUE(known[0]->id_is_taken);
  EXPECT_FALSE(known[1]->job.has_value());
  EXPECT_FALSE(known[1]->id_is_taken);
  const auto jobs = store_->FindRequests({{"local", "r1"}, {"nobody", "r1"}, {"local", ""}});
  ASSERT_TRUE(jobs.ok()) << jobs.status();
  ASSERT_EQ(jobs->size(), 3u);
  EXPECT_EQ((*jobs)[0]->id, "a-1");
  EXPECT_EQ((*jobs)[0]->asked_sha256, store_->GetJob("a-1")->asked_sha256);
  EXPECT_FALSE((*jobs)[1].has_value());
  EXPECT_FALSE((*jobs)[2].has_value());
}

TEST_P(StoreContractTest, FindByNameGivesTheNewest) {
  ASSERT_EQ(store_->Commit(Change({NewJob("a-1"), NewJob("a-2"), NewJob("b-1")})),
            absl::OkStatus());
  ASSERT_EQ(store_->Commit(Change({NewJob("a-3")})), absl::OkStatus());
  EXPECT_EQ(*store_->FindByName("a"), (std::vector<std::string>{"a-3", "a-2", "a-1"}));
  for (int i = 4; i < 9; ++i) {
    ASSERT_EQ(store_->Commit(Change({NewJob(absl::StrCat("a-", i))})), absl::OkStatus());
  }
  EXPECT_EQ(*store_->FindByName("a"),
            (std::vector<std::string>{"a-8", "a-7", "a-6", "a-5", "a-4"}));
  EXPECT_EQ(*store_->FindByName("b"), (std::vector<std::string>{"b-1"}));
  EXPECT_TRUE(store_->FindByName("c")->empty());
}

TEST_P(StoreContractTest, ListPagesAreNewestFirstWithoutGapOrRepetition) {
  for (int i = 0; i < 7; ++i) {
    Job job = Started(NewJob(absl::StrCat("a-", i)), 0, 10 + i);
    job.decisions.push_back({kStart, DecisionRule::kB2, "a", "b", "c"});
    ASSERT_EQ(store_->Commit(Change({job})), absl::OkStatus());
  }
  JobFilter filter;
  filter.limit = 3;
  std::vector<std::string> ids;
  int pages = 0;
  do {
    const auto page = store_->ListJobs(filter);
    ASSERT_TRUE(page.ok()) << page.status();
    for (const auto& job : page->jobs) {
      ids.push_back(job->id);
      EXPECT_TRUE(job->decisions.empty() && job->attempts.empty());
      EXPECT_EQ(job->tasks.size(), 3u);
    }
    filter.page_token = page->next_page_token;
    // A Job that is added meanwhile does not shift the pages.
    ASSERT_EQ(store_->Commit(Change({NewJob(absl::StrCat("new-", pages))})), absl::OkStatus());
  } while (!filter.page_token.empty() && ++pages < 10);
  EXPECT_EQ(absl::StrJoin(ids, " "), "a-6 a-5 a-4 a-3 a-2 a-1 a-0");
  filter.page_token = "nonsense";
  EXPECT_TRUE(absl::IsInvalidArgument(store_->ListJobs(filter).status()));
}

TEST_P(StoreContractTest, AListReadsNoJobThatTheCallerHas) {
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(store_->Commit(Change({NewJob(absl::StrCat("a-", i))})), absl::OkStatus());
  }
  JobFilter filter;
  const auto had = std::make_shared<const Job>();
  filter.known = [&had](const std::string& id) { return id == "a-1" ? had : nullptr; };
  const JobPage page = store_->ListJobs(filter).value();
  ASSERT_EQ(page.jobs.size(), 3u);
  EXPECT_EQ(page.jobs[1], had);
  EXPECT_FALSE(page.jobs[0]->tasks.empty());
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
    for (const auto& job : page.jobs) ids.push_back(job->id);
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

}  // namespace traind
