// What is stored beside the Jobs themselves: metrics, events, speeds, quotas, Workers, deletions.
#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>

#include <cmath>
#include <limits>
#include <utility>

#include "tests/contract/store_contract.h"

namespace traind {

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
  auto metrics = store_->GetMetrics("a-1", 0, 100, "").value();
  ASSERT_EQ(metrics.size(), 3u);
  EXPECT_EQ(metrics[1].sequence, 2);
  EXPECT_EQ(metrics[1].point.step, 2);
  EXPECT_EQ(metrics[1].point.name, "train_loss");
  EXPECT_EQ(metrics[1].point.value, 0.5);
  EXPECT_EQ(metrics[2].sequence, 3);
  EXPECT_TRUE(std::isnan(metrics[2].point.value));
  EXPECT_EQ(store_->GetMetrics("a-1", 1, 1, "")->at(0).sequence, 2);
  EXPECT_EQ(store_->GetMetrics("b-1", 0, 100, "")->size(), 1u);
  EXPECT_TRUE(store_->GetMetrics("a-1", 3, 100, "")->empty());
  EXPECT_EQ(store_->GetMetrics("a-1", 0, 100, "train_loss")->size(), 3u);
  EXPECT_TRUE(store_->GetMetrics("a-1", 0, 100, "val_metric")->empty());
  m.metrics = {Metric("a-1", 5), Metric("a-1", 6)};
  m.metrics[0].name = "importance:age";
  m.metrics[1].name = "importance";
  ASSERT_EQ(store_->Commit(m), absl::OkStatus());
  metrics = store_->GetMetrics("a-1", 0, 100, "importance:").value();
  ASSERT_EQ(metrics.size(), 1u) << "names that begin so";
  EXPECT_EQ(metrics[0].point.name, "importance:age");
  EXPECT_TRUE(store_->GetMetrics("a-1", 0, 100, "train_:")->empty());
}

TEST_P(StoreContractTest, AStampTellsEachChangeOfAJob) {
  EXPECT_TRUE(absl::IsNotFound(store_->StampOf("a-1").status()));
  Job job = NewJob("a-1");
  ASSERT_EQ(store_->Commit(Change({job, NewJob("b-1")})), absl::OkStatus());
  std::vector<JobStamp> stamps{store_->StampOf("a-1").value()};
  const auto add = [&](const Mutations& change) {
    ASSERT_EQ(store_->Commit(change), absl::OkStatus());
    stamps.push_back(store_->StampOf("a-1").value());
  };
  ++job.version;
  add(Change({job}));
  Mutations metric;
  metric.metrics = {Metric("a-1", 1)};
  add(metric);
  add(metric);
  Mutations pin;
  pin.pins = {{"a-1", true}};
  add(pin);
  for (size_t i = 0; i < stamps.size(); ++i) {
    for (size_t j = 0; j < stamps.size(); ++j) EXPECT_EQ(stamps[i] == stamps[j], i == j) << i << j;
  }
  Mutations other;
  other.metrics = {Metric("b-1", 1)};
  add(other);
  EXPECT_TRUE(stamps.back() == stamps[stamps.size() - 2]);  // of another Job
}

TEST_P(StoreContractTest, RemarksAreEventsOfJobsThatMayBeOverOrGone) {
  Job over = NewJob("a-1");
  over.state = JobState::kCancelled;
  ASSERT_EQ(store_->Commit(Change({over})), absl::OkStatus());
  Mutations m;
  m.remarks = {{"none", kStart, "damaged", "x"}, {"a-1", kStart, "damaged", "y"}};
  ASSERT_FALSE(m.empty());
  ASSERT_EQ(store_->Commit(m), absl::OkStatus());
  OpenAgain();
  const auto events = store_->GetEvents("a-1", 0, 100);
  ASSERT_TRUE(events.ok()) << events.status();
  ASSERT_EQ(events->size(), 1u);
  EXPECT_EQ(events->at(0).detail, "y");
  EXPECT_TRUE(store_->GetEvents("none", 0, 100)->empty());
}

TEST_P(StoreContractTest, RecordedSpeedIsOfTheSameModelOnTheSameBytesThenTheSameSize) {
  const auto done = [&](const std::string& id, const std::string& key, const std::string& content,
                        double step_s, JobState state = JobState::kSucceeded) {
    Job job = NewJob(id);
    job.spec.speed_key = key;
    job.table.table = "cache/x.table";
    job.table.content_sha256 = content;
    Fold(job, 0).measured.step_s = step_s;
    ASSERT_EQ(store_->Commit(Change({job})), absl::OkStatus());
    ASSERT_EQ(store_->Commit(Change({Ended(job, state)})), absl::OkStatus());
  };
  done("a-1", "mlp", "same", 1);
  done("a-2", "mlp", "same", 2);
  done("a-3", "mlp", "other", 3);
  done("a-4", "mlp", "same", 4, JobState::kFailed);
  done("a-5", "mlp", "same", 0);
  done("a-6", "lstm", "same", 6);
  done("a-7", "", "same", 7);  // from before there were keys
  EXPECT_EQ(store_->RecordedSpeed("mlp", "same", 4096)->step_s, 2);
  EXPECT_EQ(store_->RecordedSpeed("mlp", "unknown", 4096)->step_s, 3);
  EXPECT_EQ(store_->RecordedSpeed("mlp", "", 4096)->step_s, 3);
  EXPECT_EQ(store_->RecordedSpeed("lstm", "same", 4096)->step_s, 6);
  EXPECT_EQ(store_->RecordedSpeed("lstm", "", 4096)->step_s, 6);
  EXPECT_TRUE(absl::IsNotFound(store_->RecordedSpeed("mlp", "unknown", 17).status()));
  EXPECT_TRUE(absl::IsNotFound(store_->RecordedSpeed("gru", "same", 4096).status()));
  EXPECT_TRUE(absl::IsNotFound(store_->RecordedSpeed("", "same", 4096).status()));
}

TEST_P(StoreContractTest, TrainedFoldsAreFoundByKeyAndContentTheNewestFirst) {
  const auto add = [&](const std::string& id, const std::string& key, const std::string& content) {
    Job job = NewJob(id);
    job.spec.cache_key = key;
    job.table.table = "cache/x.table";
    job.table.content_sha256 = content;
    ASSERT_EQ(store_->Commit(Change({job})), absl::OkStatus());
  };
  add("a-1", "key", "same");
  add("a-2", "key", "other");
  add("a-3", "another", "same");
  add("a-4", "", "same");
  add("a-5", "key", "same");
  const auto found = store_->FindTrained("key", "same");
  ASSERT_TRUE(found.ok()) << found.status();
  ASSERT_EQ(found->size(), 2u);
  EXPECT_EQ((*found)[0].id, "a-5");
  EXPECT_EQ((*found)[1].id, "a-1");
  EXPECT_TRUE(store_->FindTrained("", "same")->empty());
  for (int i = 10; i < 20; ++i) add(absl::StrCat("b-", i), "key", "same");
  EXPECT_EQ(store_->FindTrained("key", "same")->size(), kMostTrained);
}

TEST_P(StoreContractTest, QuotasAndWhatWasUsedOfThemComeBack) {
  Quota quota;
  quota.subject.owner = "local";
  quota.allowance = absl::Hours(45);
  quota.period = absl::Hours(24 * 7);
  quota.rolling = false;
  quota.since = kStart;
  Quota labelled = quota;
  labelled.subject = {"", "team=a"};
  Mutations m = Change({NewJob("a-1")});
  m.quotas = {quota, labelled};
  m.last_seen = kStart + absl::Hours(1);
  ASSERT_EQ(store_->Commit(m), absl::OkStatus());
  Job job = Started(NewJob("a-1"), 0, 7);
  job.spec.labels = {{"team", "a"}};
  ASSERT_EQ(store_->Commit(Change({job})), absl::OkStatus());
  EXPECT_TRUE(store_->LoadSnapshot()->usage.empty());  // it still runs
  job = Next(job);
  job.attempts[0].ended_at = kStart + absl::Seconds(20);
  ASSERT_EQ(store_->Commit(Change({job})), absl::OkStatus());
  OpenAgain();
  const auto snapshot = store_->LoadSnapshot();
  ASSERT_EQ(snapshot->quotas.size(), 2u);
  for (const Quota& stored : snapshot->quotas) {
    EXPECT_EQ(stored.allowance, quota.allowance);
    EXPECT_EQ(stored.period, quota.period);
    EXPECT_FALSE(stored.rolling);
    EXPECT_EQ(stored.since, kStart);
  }
  ASSERT_EQ(snapshot->usage.size(), 1u);
  const AttemptUsage& used = snapshot->usage[0];
  EXPECT_EQ(used.owner, "local");
  EXPECT_EQ(used.labels.at("team"), "a");
  EXPECT_EQ(used.start, kStart + absl::Seconds(7));
  EXPECT_EQ(used.end, kStart + absl::Seconds(20));
  EXPECT_EQ(used.slots, 2);
  EXPECT_EQ(store_->UsageSince(kStart + absl::Seconds(19))->size(), 1u);
  EXPECT_TRUE(store_->UsageSince(kStart + absl::Seconds(20))->empty());
  EXPECT_TRUE(store_->HasOwner("local").value());
  EXPECT_FALSE(store_->HasOwner("bob").value());
  m = {};
  m.removed_quotas = {labelled.subject};
  ASSERT_EQ(store_->Commit(m), absl::OkStatus());
  EXPECT_EQ(store_->LoadSnapshot()->quotas.size(), 1u);
}

TEST_P(StoreContractTest, JobsThatEndedJustBeforeTheLastStoredTimeComeBack) {
  const auto end = [&](const std::string& id, absl::Time at) {
    const Job job = NewJob(id);
    ASSERT_EQ(store_->Commit(Change({job})), absl::OkStatus());
    const Job started = Started(job, 0, at == kStart ? 1 : 2);
    ASSERT_EQ(store_->Commit(Change({started})), absl::OkStatus());
    Job ended = Ended(started, JobState::kSucceeded);
    ended.finished_at = at;
    Mutations m = Change({ended});
    m.last_seen = at;
    ASSERT_EQ(store_->Commit(m), absl::OkStatus());
  };
  end("early-1", kStart);
  end("late-1", kStart + 2 * kEndedLately);
  ASSERT_EQ(store_->Commit(Change({NewJob("live-1")})), absl::OkStatus());
  OpenAgain();
  EXPECT_EQ(store_->LoadSnapshot()->ended_lately, std::vector<std::string>({"late-1"}));
}

TEST_P(StoreContractTest, WorkersThatAreClosedOrWereSilentComeBack) {
  Mutations m;
  m.workers.push_back({"open", "host", kStart, {}});
  m.workers.push_back({"closed", "host", kStart, {}, WorkerMode::kDraining, kStart});
  m.workers.push_back({"silent", "host", kStart, {}});
  m.workers.back().silent = absl::Seconds(7);
  m.awaited = absl::Seconds(9);
  ASSERT_EQ(store_->Commit(m), absl::OkStatus());
  OpenAgain();
  auto snapshot = store_->LoadSnapshot();
  EXPECT_EQ(snapshot->awaited, absl::Seconds(9));
  ASSERT_EQ(snapshot->workers.size(), 2u);
  for (const WorkerNote& worker : snapshot->workers) {
    const bool closed = worker.id == "closed";
    EXPECT_EQ(worker.mode, closed ? WorkerMode::kDraining : WorkerMode::kNone);
    EXPECT_EQ(worker.drain_at, closed ? kStart : absl::InfiniteFuture());
    EXPECT_EQ(worker.silent, closed ? absl::ZeroDuration() : absl::Seconds(7));
  }
  m = {};
  m.workers.push_back({"silent", "host", kStart, {}});
  m.last_seen = kStart;
  ASSERT_EQ(store_->Commit(m), absl::OkStatus());
  OpenAgain();
  snapshot = store_->LoadSnapshot();
  EXPECT_EQ(snapshot->workers.size(), 1u);
  EXPECT_EQ(snapshot->awaited, absl::Seconds(9));
}

TEST_P(StoreContractTest, ADeletedJobIsFoundByNothingAndItsRowsGoInSteps) {
  Job job = NewJob("a-1");
  job.request_id = "r";
  job.spec.cache_key = "key";
  job.table.table = "cache/k.table";
  job.table.content_sha256 = "c0ffee";
  Mutations m = Change({job, NewJob("b-1")});
  m.deletions = {{"b-1", kStart}};
  EXPECT_TRUE(absl::IsAborted(store_->Commit(m)));  // it is not over
  m = Change({job});
  for (int64_t step = 1; step <= kPurgeRows + 1; ++step) m.metrics.push_back(Metric("a-1", step));
  m.events = {{"a-1", kStart, "state", "QUEUED"}};
  ASSERT_EQ(store_->Commit(m), absl::OkStatus());
  ASSERT_EQ(store_->Commit(Change({Ended(job, JobState::kSucceeded)})), absl::OkStatus());
  ASSERT_EQ(store_->Commit(Change({Ended(NewJob("b-1"), JobState::kFailed)})), absl::OkStatus());
  EXPECT_EQ(store_->FindTrained("key", "c0ffee")->size(), 1u);

  m = Change({});
  m.deletions = {{"a-1", kStart + absl::Hours(1)}};
  ASSERT_EQ(store_->Commit(m), absl::OkStatus());
  OpenAgain();
  EXPECT_TRUE(absl::IsNotFound(store_->GetJob("a-1").status()));
  EXPECT_TRUE(store_->FindByName("a")->empty());
  EXPECT_TRUE(absl::IsNotFound(store_->FindByRequest("local", "r").status()));
  EXPECT_TRUE(store_->FindTrained("key", "c0ffee")->empty());
  ASSERT_EQ(store_->ListJobs({})->jobs.size(), 1u);
  EXPECT_EQ(store_->ListEnded()->size(), 1u);
  EXPECT_EQ(store_->FindDeleted("a-1").value(), kStart + absl::Hours(1));
  EXPECT_TRUE(absl::IsNotFound(store_->FindDeleted("b-1").status()));
  EXPECT_EQ(*store_->ListDeleting(kStart), std::vector<std::string>({"a-1"}));
  Job again = NewJob("a-2");
  again.request_id = "r";  // it is free
  EXPECT_EQ(store_->Commit(Change({again})), absl::OkStatus());

  int purges = 0;
  while (!store_->ListDeleting(kStart)->empty() && purges < 10) {
    ASSERT_EQ(store_->Commit(m), absl::OkStatus());  // a repeated deletion changes nothing
    Mutations purge = Change({});
    purge.purges = {{"a-1", kStart}};
    ASSERT_EQ(store_->Commit(purge), absl::OkStatus());
    ++purges;
  }
  EXPECT_EQ(purges, 2);
  EXPECT_TRUE(store_->GetMetrics("a-1", 0, 10, "")->empty());
  EXPECT_TRUE(store_->FindDeleted("a-1").ok());
  OpenAgain();
  EXPECT_TRUE(store_->GetJob("b-1").ok());
  EXPECT_TRUE(store_->GetJob("a-2").ok());
}

TEST_P(StoreContractTest, WhatADeletedJobUsedStillCountsForQuotas) {
  Quota quota;
  quota.subject.owner = "local";
  quota.period = absl::Hours(24 * 7);
  Job job = Started(NewJob("a-1"), 0, 7);
  job.spec.labels = {{"team", "a"}};
  job.attempts[0].ended_at = kStart + absl::Seconds(20);
  Mutations m = Change({job, Ended(job, JobState::kSucceeded)});
  m.quotas = {quota};
  m.deletions = {{"a-1", kStart}};
  ASSERT_EQ(store_->Commit(m), absl::OkStatus());
  m = Change({});
  m.purges = {{"a-1", kStart}};
  ASSERT_EQ(store_->Commit(m), absl::OkStatus());
  EXPECT_TRUE(store_->ListDeleting(kStart)->empty());
  OpenAgain();
  ASSERT_EQ(store_->UsageSince(kStart)->size(), 1u);
  EXPECT_EQ(store_->UsageSince(kStart)->front().labels.at("team"), "a");
}

TEST_P(StoreContractTest, EndedJobsAreListedTheFirstEndInFrontWithTheirPins) {
  const Job first = NewJob("a-1"), second = NewJob("b-1");
  Job later = Ended(first, JobState::kSucceeded);
  later.finished_at += absl::Hours(1);
  Mutations m = Change({first, second, NewJob("lives-1"), later});
  m.metrics = {Metric("b-1", 1)};
  ASSERT_EQ(store_->Commit(m), absl::OkStatus());
  ASSERT_EQ(store_->Commit(Change({Ended(second, JobState::kFailed)})), absl::OkStatus());
  m = Change({});
  m.pins = {{"a-1", true}};
  ASSERT_EQ(store_->Commit(m), absl::OkStatus());
  const auto ended = store_->ListEnded();
  ASSERT_EQ(ended->size(), 2u);
  EXPECT_EQ(ended->at(0).id, "b-1");
  EXPECT_TRUE(ended->at(0).has_history);
  EXPECT_FALSE(ended->at(0).pinned);
  EXPECT_EQ(ended->at(1).id, "a-1");
  EXPECT_EQ(ended->at(1).ended_at, later.finished_at);
  EXPECT_FALSE(ended->at(1).has_history);
  EXPECT_TRUE(ended->at(1).pinned);
  EXPECT_TRUE(store_->GetJob("a-1")->pinned);

  m = Change({});
  m.pins = {{"a-1", false}};
  m.forgotten = {"b-1", "lives-1"};
  ASSERT_EQ(store_->Commit(m), absl::OkStatus());
  EXPECT_FALSE(store_->GetJob("a-1")->pinned);
  EXPECT_FALSE(store_->ListEnded()->at(0).has_history);
  EXPECT_TRUE(store_->GetMetrics("b-1", 0, 10, "")->empty());
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
