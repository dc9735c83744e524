#include "server/retention/retention_plan.h"

#include <absl/strings/str_cat.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

namespace traind {
namespace {

const absl::Time kNow = absl::FromUnixSeconds(1'800'000'000);

JobKept Kept(const std::string& id, absl::Duration age, int64_t bytes = 100) {
  JobKept job;
  job.id = id;
  job.ended_at = kNow - age;
  job.bytes = bytes;
  return job;
}

std::vector<std::string> Names(const std::vector<GarbageItem>& items, Garbage what) {
  std::vector<std::string> names;
  for (const GarbageItem& item : items) {
    if (item.what == what) names.push_back(item.name);
  }
  return names;
}

using Strings = std::vector<std::string>;

TEST(RetentionPlanTest, NothingGoesWithinTheLimits) {
  StateContent state;
  state.kept = {Kept("a", absl::Hours(3)), Kept("b", absl::Hours(2))};
  state.kept[0].has_history = true;
  state.cache = {{"k", kNow - absl::Hours(24 * 29), 50, false}};
  EXPECT_TRUE(PlanRetention(state, {}, kNow).empty());
}

TEST(RetentionPlanTest, TheJobsThatEndedFirstGoAndPinnedOnesStay) {
  StateContent state;
  state.kept = {Kept("a", absl::Hours(4)), Kept("b", absl::Hours(3)), Kept("c", absl::Hours(2)),
                Kept("d", absl::Hours(1))};
  state.kept[0].pinned = true;
  RetentionLimits limits;
  limits.jobs = 2;
  EXPECT_EQ(Names(PlanRetention(state, limits, kNow), Garbage::kJob), Strings({"b", "c"}));
}

TEST(RetentionPlanTest, AJobStaysWhileOthersUseItsModelsItsFoldsOrMayTakeThem) {
  StateContent state;
  state.kept = {Kept("models", absl::Hours(4)), Kept("folds", absl::Hours(3)),
                Kept("same", absl::Hours(2)), Kept("other", absl::Hours(1))};
  state.kept[2].cache_key = "settings";
  JobAtWork predicts, goes_on, trains;
  predicts.models_from = "models";
  goes_on.from = "folds";
  trains.reuses = "settings";
  state.at_work = {predicts, goes_on, trains};
  RetentionLimits limits;
  limits.jobs = 0;
  EXPECT_EQ(Names(PlanRetention(state, limits, kNow), Garbage::kJob), Strings({"other"}));
}

TEST(RetentionPlanTest, CachesGoBeforeInterimFilesAndTheseBeforeJobs) {
  StateContent state;
  state.kept = {Kept("a", absl::Minutes(20), 100), Kept("b", absl::Minutes(10), 100)};
  state.kept[1].interim_bytes = 40;
  state.cache = {{"new", kNow - absl::Minutes(1), 60, false},
                 {"old", kNow - absl::Minutes(2), 60, false}};
  RetentionLimits limits;
  limits.bytes = 260;
  auto items = PlanRetention(state, limits, kNow);
  ASSERT_EQ(items.size(), 1u);
  EXPECT_EQ(items[0].name, "old");
  limits.bytes = 199;
  items = PlanRetention(state, limits, kNow);
  EXPECT_EQ(Names(items, Garbage::kCache), Strings({"old", "new"}));
  EXPECT_EQ(Names(items, Garbage::kInterim), Strings({"b"}));
  EXPECT_TRUE(Names(items, Garbage::kJob).empty());
  limits.bytes = 159;
  EXPECT_EQ(Names(PlanRetention(state, limits, kNow), Garbage::kJob), Strings({"a"}));
}

TEST(RetentionPlanTest, ADiskThatOthersFilledCostsNoJob) {
  StateContent state;
  state.kept = {Kept("a", absl::Minutes(20), 100)};
  state.kept[0].interim_bytes = 40;
  state.cache = {{"k", kNow, 60, false}};
  state.free_bytes = 5;
  RetentionLimits limits;
  limits.free_bytes = 1000;
  const auto items = PlanRetention(state, limits, kNow);
  EXPECT_EQ(Names(items, Garbage::kCache), Strings({"k"}));
  EXPECT_EQ(Names(items, Garbage::kInterim), Strings({"a"}));
  EXPECT_TRUE(Names(items, Garbage::kJob).empty());
}

TEST(RetentionPlanTest, AJobThatHasNotReadItsDataYetKeepsTheWholeCache) {
  StateContent state;
  state.cache = {{"k", kNow - absl::Hours(24 * 365), 60, false}};
  JobAtWork reads;
  reads.reads_data = true;
  state.at_work = {reads};
  EXPECT_TRUE(PlanRetention(state, {}, kNow).empty());
  state.at_work[0].reads_data = false;
  EXPECT_EQ(Names(PlanRetention(state, {}, kNow), Garbage::kCache), Strings({"k"}));
}

// ---- simulation -------------------------------------------------------------

// A state folder with Jobs that come, work and end, whose retention runs now and then.
class Simulation {
 public:
  explicit Simulation(uint32_t seed) : random_(seed) {
    limits_.jobs = Pick(0, 12);
    limits_.bytes = Pick(0, 3) == 0 ? kNoLimit : Pick(0, 3000);
    limits_.free_bytes = Pick(0, 3) == 0 ? Pick(0, 2000) : 0;
    limits_.job_age = Pick(0, 1) == 0 ? absl::InfiniteDuration() : absl::Hours(Pick(1, 400));
    limits_.history_age = absl::Hours(Pick(1, 300));
    limits_.cache_age = absl::Hours(Pick(1, 300));
    limits_.interim_age = absl::Hours(Pick(0, 10));
  }

  void Run() {
    for (int round = 0; round < 40; ++round) {
      now_ += absl::Minutes(Pick(0, 3000));
      for (int i = Pick(0, 4); i > 0; --i) Submit();
      for (int i = Pick(0, 4); i > 0 && !state_.at_work.empty(); --i) End();
      if (!state_.kept.empty() && Pick(0, 3) == 0) {
        JobKept& job = state_.kept[Any(state_.kept.size())];
        job.pinned = !job.pinned;
      }
      state_.free_bytes = Pick(0, 5000);
      state_.other_bytes = Pick(0, 500);
      Collect();
    }
  }
  int64_t deleted() const { return deleted_; }

 private:
  int Pick(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random_); }
  size_t Any(size_t size) { return static_cast<size_t>(Pick(0, static_cast<int>(size) - 1)); }

  void Submit() {
    JobAtWork job;
    job.id = absl::StrCat("job-", ++jobs_);
    if (!state_.kept.empty()) {
      const JobKept& source = state_.kept[Any(state_.kept.size())];
      const int kind = Pick(0, 3);
      if (kind == 0) job.from = source.id;
      if (kind == 1) job.models_from = source.id;
      if (kind == 2) job.reuses = source.cache_key;
    }
    job.reads_data = Pick(0, 9) == 0;
    if (!job.reads_data && job.models_from.empty()) {
      job.table = absl::StrCat("table-", Pick(0, 9));
      const auto found =
          std::find_if(state_.cache.begin(), state_.cache.end(),
                       [&job](const CacheEntry& entry) { return entry.key == job.table; });
      if (found == state_.cache.end()) {
        state_.cache.push_back({job.table, now_, Pick(0, 300), Pick(0, 9) == 0});
      } else {
        found->last_used = now_;
      }
    }
    state_.at_work.push_back(job);
  }
  void End() {
    const size_t at = Any(state_.at_work.size());
    JobKept job = Kept(state_.at_work[at].id, absl::ZeroDuration(), Pick(0, 300));
    job.ended_at = now_;
    job.interim_bytes = Pick(0, static_cast<int>(job.bytes));
    job.has_history = Pick(0, 1) == 1;
    job.cache_key = absl::StrCat("settings-", Pick(0, 5));
    state_.kept.push_back(job);
    state_.at_work.erase(state_.at_work.begin() + static_cast<int64_t>(at));
  }

  bool Needed(const JobKept& kept) const {
    return std::any_of(state_.at_work.begin(), state_.at_work.end(), [&](const JobAtWork& job) {
      return job.from == kept.id || job.models_from == kept.id ||
             (!job.reuses.empty() && job.reuses == kept.cache_key);
    });
  }
  bool Needed(const CacheEntry& entry) const {
    return entry.in_a_spec ||
           std::any_of(state_.at_work.begin(), state_.at_work.end(), [&](const JobAtWork& job) {
             return job.reads_data || job.table == entry.key;
           });
  }
  JobKept* FindKept(const std::string& id) {
    const auto found = std::find_if(state_.kept.begin(), state_.kept.end(),
                                    [&id](const JobKept& job) { return job.id == id; });
    return found == state_.kept.end() ? nullptr : &*found;
  }

  void Collect() {
    const std::vector<GarbageItem> items = PlanRetention(state_, limits_, now_);
    for (const GarbageItem& item : items) Apply(item);
    CheckLimits();
    EXPECT_TRUE(PlanRetention(state_, limits_, now_).empty()) << "a second run finds more";
  }

  void Apply(const GarbageItem& item) {
    ++deleted_;
    ASSERT_FALSE(item.why.empty());
    if (item.what == Garbage::kCache) {
      const auto found =
          std::find_if(state_.cache.begin(), state_.cache.end(),
                       [&item](const CacheEntry& entry) { return entry.key == item.name; });
      ASSERT_NE(found, state_.cache.end()) << item.name;
      ASSERT_FALSE(Needed(*found)) << item.name;
      ASSERT_EQ(found->bytes, item.bytes);
      state_.free_bytes += item.bytes;
      state_.cache.erase(found);
      return;
    }
    JobKept* const job = FindKept(item.name);
    ASSERT_NE(job, nullptr) << item.name;
    state_.free_bytes += item.bytes;
    if (item.what == Garbage::kHistory) {
      ASSERT_TRUE(job->has_history && !job->pinned) << item.name;
      job->has_history = false;
      return;
    }
    ASSERT_FALSE(Needed(*job)) << item.name;
    if (item.what == Garbage::kInterim) {
      ASSERT_EQ(job->interim_bytes, item.bytes);
      job->bytes -= item.bytes;
      job->interim_bytes = 0;
      return;
    }
    ASSERT_EQ(item.what, Garbage::kJob);
    ASSERT_FALSE(job->pinned) << item.name;
    ASSERT_EQ(job->bytes, item.bytes);
    for (const JobKept& other : state_.kept) {
      if (&other == job) break;
      const bool older = now_ - other.ended_at <= limits_.job_age && other.bytes > 0;
      ASSERT_FALSE(older && !other.pinned && !Needed(other))
          << other.id << " ended before " << job->id;
    }
    state_.kept.erase(state_.kept.begin() + (job - state_.kept.data()));
  }

  // Every limit holds, or nothing is left that may go for it.
  void CheckLimits() {
    int64_t bytes = state_.other_bytes;
    bool job_may_go = false, job_with_bytes_may_go = false, other_may_go = false;
    for (const JobKept& job : state_.kept) {
      bytes += job.bytes;
      const bool may_go = !job.pinned && !Needed(job);
      job_may_go |= may_go;
      job_with_bytes_may_go |= may_go && job.bytes > 0;
      other_may_go |= job.interim_bytes > 0 && !Needed(job);
      EXPECT_TRUE(!may_go || now_ - job.ended_at <= limits_.job_age) << job.id;
      EXPECT_TRUE(job.pinned || !job.has_history || now_ - job.ended_at <= limits_.history_age);
      if (!Needed(job) && job.interim_bytes > 0) {
        EXPECT_LE(now_ - job.ended_at, limits_.interim_age);
      }
    }
    for (const CacheEntry& entry : state_.cache) {
      bytes += entry.bytes;
      other_may_go |= !Needed(entry);
      EXPECT_TRUE(Needed(entry) || now_ - entry.last_used <= limits_.cache_age) << entry.key;
    }
    const auto jobs = static_cast<int64_t>(state_.kept.size());
    EXPECT_TRUE(jobs <= limits_.jobs || !job_may_go) << jobs << " Jobs";
    EXPECT_TRUE(bytes <= limits_.bytes || !(job_with_bytes_may_go || other_may_go)) << bytes;
    EXPECT_TRUE(state_.free_bytes >= limits_.free_bytes || !other_may_go) << state_.free_bytes;
  }

  std::mt19937 random_;
  RetentionLimits limits_;
  StateContent state_;
  absl::Time now_ = kNow;
  int jobs_ = 0;
  int64_t deleted_ = 0;
};

TEST(RetentionPlanTest, LimitsHoldAndWhatIsNeededStaysOverThousandsOfHistories) {
  int64_t deleted = 0;
  for (uint32_t seed = 1; seed <= 4000; ++seed) {
    Simulation simulation(seed);
    simulation.Run();
    deleted += simulation.deleted();
    ASSERT_FALSE(testing::Test::HasFailure()) << "seed " << seed;
  }
  EXPECT_GT(deleted, 100'000) << "the histories deleted too little to tell anything";
}

}  // namespace
}  // namespace traind
