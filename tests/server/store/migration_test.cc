// Opens databases of every version, with what the first version of traind has filled in.
#include <absl/strings/str_cat.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <memory>
#include <string>
#include <vector>

#include "server/store/schema.h"
#include "server/store/sqlite.h"
#include "server/store/sqlite_store.h"
#include "tests/contract/stored_jobs.h"

namespace traind {
namespace {

using sqlite::Connection;

// Two Jobs as version 1 wrote them: one has ended with a Prediction of two folds, one was running.
// Members have no weights yet.
constexpr char kFilled[] = R"sql(
INSERT INTO jobs VALUES(
  1, 'done-1', 'ann', 'r1', 'done', '5ec', '{"name":"done"}', 'name: done', 1800000000000,
  'accuracy', 1, 2, 20, 5, 1, 'cpu', 64, 'fp32', 60000, 3, 1, 4096, 512, 90000, NULL, 1,
  0.8, 0.2, 0.15, 0.7, 5, 1, 'all done', 1800000000250, 1800000090000, 1800000060000, 1, 0,
  'logistic', 0.71, '["column x is ignored"]', 2, 9);
INSERT INTO jobs VALUES(
  2, 'runs-1', 'bob', 'r2', 'runs', '5ed', '{"name":"runs"}', 'name: runs', 1800000100000,
  'rmse', 0, 1, 12, 0, 2, '', 0, '', 60000, 0, 0, 8192, 0, NULL, 1800009000000, 2,
  0.7, 0.3, 0.1, 0.6, 3, 0, '', 1800000100500, 1800009000000, NULL, 0, 0,
  '', NULL, '[]', NULL, 4);
INSERT INTO job_labels VALUES(1, 'stage', 'prod'), (1, 'team', 'a');
INSERT INTO job_events VALUES(1, 0, 1800000000000, 'state', 'QUEUED');
INSERT INTO decisions VALUES(1, 0, 1800000001000, 'B2', 'estimate 100 s', '5 folds', '2 folds');
INSERT INTO plans VALUES(1, 0, 1, 2, 20, 1, 2, 0.001, 44000, 9000, 1800000001000);
INSERT INTO plans VALUES(1, 1, 2, 2, 12, 1, 2, NULL, NULL, 8000, 1800000002000);
INSERT INTO checkpoints VALUES(1, 7, 40, 0, 1.5, 'jobs/done-1/attempts/7/checkpoint-40.json',
  'feed', 1234, 0.875, 1800000020000);
INSERT INTO tasks VALUES(1, 0, 1, -1, 0, 3, 6, 1, 0, 0, NULL, 0, 0, NULL, '',
  0, 0, 0, 0, 0, 0, '', NULL, NULL);
INSERT INTO tasks VALUES(1, 1, 2, 0, 0, 3, 7, 2, 1, 1, 1800000003000, 20, 12, 0.9, 'patience',
  0.001, 0.002, 0.3, 0.4, 5.5, 321,
  '{"attempt":7,"complete":true,"epochs_done":12.0,"fold":0,"oof":"attempts/7/oof.npy",'
  || '"oof_sha256":"aa","score":0.9,"test":"attempts/7/test.npy","test_sha256":"bb"}', 7, 40);
INSERT INTO tasks VALUES(1, 2, 2, 1, 0, 6, 8, 3, 3, 0, NULL, 12, 0, NULL, 'the loss is NaN',
  0, 0, 0, 0, 0, 0, '', NULL, NULL);
INSERT INTO tasks VALUES(2, 0, 1, -1, 0, 3, 9, 1, 0, 0, NULL, 0, 0, NULL, '',
  0, 0, 0, 0, 0, 0, '', NULL, NULL);
INSERT INTO tasks VALUES(2, 1, 2, 0, 0, 2, 10, 1, 0, 0, NULL, 12, 3, NULL, '',
  0.01, 0.02, 0.1, 0.2, 0, 50, '', NULL, NULL);
INSERT INTO attempts VALUES(1, 0, 6, 1, -1, 'w1', '[]', 1800000000250, 1800000000750, 1, '');
INSERT INTO attempts VALUES(1, 1, 7, 2, 0, 'w1', '[0,1]', 1800000001000, 1800000030000, 1, '');
INSERT INTO attempts VALUES(1, 2, 8, 2, 1, 'w1', '[0,1]', 1800000030000, 1800000040000, 7, 'NaN');
INSERT INTO attempts VALUES(2, 0, 9, 1, -1, 'w1', '[]', 1800000100500, 1800000100900, 1, '');
INSERT INTO attempts VALUES(2, 1, 10, 2, 0, 'w1', '[2,3]', 1800000101000, NULL, 0, '');
INSERT INTO predictions VALUES(1, 2, 'jobs/done-1/prediction-2/predictions.csv', 'abc', 99, 100, 2,
  '[{"attempt":7,"complete":true,"epochs_done":12.0,"fold":0,"oof":"attempts/7/oof.npy",'
  || '"oof_sha256":"aa","score":0.9,"test":"attempts/7/test.npy","test_sha256":"bb"}]',
  '[1]', 0.92, 1, 0.91, 0.7, 1800000050000);
INSERT INTO artifacts VALUES(1, 'prediction-2/predictions.csv', 'abc', 99, NULL, NULL);
INSERT INTO datasets VALUES(1, 'cache/k.table', 'c0ffee', 1000, 100, 9, 3);
INSERT INTO datasets VALUES(2, 'cache/l.table', 'beef', 500, 0, 4, 0);
INSERT INTO metrics VALUES(1, 1, 1800000010000, 0, 7, 10, 0.5, 'train_loss', 0.25);
INSERT INTO workers VALUES('w1', 'host', 1800000101000);
INSERT INTO devices VALUES('w1', 0, 'cpu', 'core', '', 1000);
INSERT INTO totals VALUES(1, 10, 1800000101000);
)sql";

class MigrationTest : public testing::Test {
 protected:
  void SetUp() override {
    path_ = Fill(1);
    store_ = OpenStore(path_);
  }
  // Makes a database of that version, which the first one has filled.
  static std::string Fill(size_t version) {
    std::string folder = absl::StrCat(testing::TempDir(), "/migration.XXXXXX");
    EXPECT_NE(mkdtemp(folder.data()), nullptr);
    const std::string path = folder + "/traind.db";
    auto db = Connection::Open(path, Connection::Mode::kReadWriteCreate).value();
    // What is made here need not outlive a power cut.
    EXPECT_EQ(db->Execute("PRAGMA synchronous = OFF"), absl::OkStatus());
    EXPECT_EQ(Migrate(*db, Migrations().first(1)), absl::OkStatus());
    EXPECT_EQ(db->Execute("PRAGMA foreign_keys = ON"), absl::OkStatus());
    EXPECT_EQ(db->Execute(kFilled), absl::OkStatus());
    if (version >= kVersionWithChecksums) {
      EXPECT_EQ(db->AddChecksums(), absl::OkStatus());
    }
    EXPECT_EQ(Migrate(*db, Migrations().first(version)), absl::OkStatus());
    return path;
  }
  static std::unique_ptr<SqliteStore> OpenStore(const std::string& path) {
    auto store = SqliteStore::Open(path);
    EXPECT_TRUE(store.ok()) << store.status();
    return *std::move(store);
  }
  int64_t Number(const char* sql) {
    auto db = Connection::Open(path_, Connection::Mode::kReadOnly).value();
    int64_t number = -1;
    sqlite::Query query = db->Select(sql);
    if (query.Next()) query.Read(number);
    return number;
  }

  std::string path_;
  std::unique_ptr<SqliteStore> store_;
};

TEST_F(MigrationTest, TheSchemaIsTheNewestAndSound) {
  EXPECT_EQ(Number("PRAGMA user_version"), static_cast<int64_t>(Migrations().size()));
  EXPECT_EQ(Number("SELECT COUNT(*) FROM pragma_foreign_key_check"), 0);
  auto db = Connection::Open(path_, Connection::Mode::kReadOnly).value();
  std::string verdict;
  sqlite::Query query = db->Select("PRAGMA integrity_check");
  if (query.Next()) query.Read(verdict);
  EXPECT_EQ(verdict, "ok");
}

TEST_F(MigrationTest, AnEndedJobIsAsItWas) {
  const auto found = store_->GetJob("done-1");
  ASSERT_TRUE(found.ok()) << found.status();
  const Job& job = *found;
  EXPECT_EQ(job.owner, "ann");
  EXPECT_EQ(job.state, JobState::kSucceeded);
  EXPECT_EQ(job.end_reason, JobEndReason::kCompleted);
  EXPECT_EQ(job.end_message, "all done");
  EXPECT_EQ(job.version, 9);
  EXPECT_TRUE(job.finish_requested);
  EXPECT_EQ(job.deadline, absl::FromUnixMillis(1'800'000'090'000));
  EXPECT_EQ(job.spec.folds, 2);
  EXPECT_EQ(job.spec.batch, 64);
  EXPECT_EQ(job.spec.priority, 3);
  EXPECT_EQ(job.spec.labels.at("team"), "a");
  EXPECT_EQ(*job.spec.budget, absl::Seconds(90));
  EXPECT_EQ(job.spec.shares.first_fold, 0.2);
  EXPECT_EQ(job.warnings, std::vector<std::string>{"column x is ignored"});
  EXPECT_EQ(job.table.content_sha256, "c0ffee");
  EXPECT_EQ(job.floor_score, 0.71);
  ASSERT_EQ(job.plans.size(), 2u);
  EXPECT_EQ(job.plans[1].epochs, 12);
  ASSERT_EQ(job.decisions.size(), 1u);
  EXPECT_EQ(job.decisions[0].to, "2 folds");
  ASSERT_EQ(job.attempts.size(), 3u);
  EXPECT_EQ(job.attempts[2].end_reason, AttemptEndReason::kDiverged);
  EXPECT_EQ(job.attempts[1].slots, std::vector<int>({0, 1}));
  EXPECT_TRUE(job.after.empty());
  EXPECT_EQ(ClockStart(job), job.accepted_at);
}

TEST_F(MigrationTest, TasksKeepWhatTheyHave) {
  const Job job = *store_->GetJob("done-1");
  ASSERT_EQ(job.tasks.size(), 3u);
  EXPECT_EQ(job.tasks[0].kind, TaskKind::kPrepare);
  const Task& task = job.tasks[1];
  EXPECT_EQ(task.state, TaskState::kDone);
  EXPECT_EQ(task.attempt, 7);
  EXPECT_EQ(task.attempts, 2);
  EXPECT_EQ(task.failures, 1);
  EXPECT_EQ(task.losses, 1);
  EXPECT_EQ(task.epochs_done, 12);
  EXPECT_EQ(task.message, "patience");
  EXPECT_EQ(task.measured.steps_per_epoch, 321);
  EXPECT_EQ(task.measured.epoch_s, 5.5);
  ASSERT_TRUE(task.member);
  EXPECT_EQ(task.member->oof_sha256, "aa");
  EXPECT_TRUE(task.member->complete);
  ASSERT_TRUE(task.checkpoint);
  EXPECT_EQ(task.checkpoint->step, 40);
  EXPECT_EQ(task.checkpoint->best_metric, 0.875);
  EXPECT_EQ(job.tasks[2].state, TaskState::kFailed);
  EXPECT_FALSE(job.tasks[2].member);
  EXPECT_EQ(store_->ListCheckpoints("done-1")->size(), 1u);
}

TEST_F(MigrationTest, ThePredictionStands) {
  const Job job = *store_->GetJob("done-1");
  ASSERT_TRUE(job.prediction);
  EXPECT_EQ(job.prediction->number, 2);
  EXPECT_EQ(job.prediction->path, "jobs/done-1/prediction-2/predictions.csv");
  EXPECT_EQ(job.prediction->sha256, "abc");
  EXPECT_EQ(job.prediction->quality, Quality::kDegraded);
  EXPECT_EQ(job.prediction->oof_score, 0.92);
  EXPECT_EQ(job.prediction->left_out, std::vector<int>{1});
  ASSERT_EQ(job.prediction->members.size(), 1u);
  EXPECT_EQ(job.prediction->members[0].attempt, 7);
}

// Fields that version 1 did not have get the values of Jobs that did not ask for them.
TEST_F(MigrationTest, NewFieldsHaveWhatIsTrueOfOldJobs) {
  const Job job = *store_->GetJob("done-1");
  EXPECT_EQ(job.spec.shares.reserve_margin, 1.3);
  EXPECT_EQ(job.spec.shares.reserve_least, absl::Milliseconds(400));
  EXPECT_EQ(job.spec.cache_key, "") << "its folds are not given to others";
  EXPECT_FALSE(job.spec.subsample);
  EXPECT_EQ(job.spec.speed_key, "");
  EXPECT_FALSE(job.quota_reached);
  EXPECT_EQ(job.plans[0].row_share, 1);
  EXPECT_EQ(job.tasks[1].row_share, 1);
  EXPECT_EQ(job.tasks[1].retry_batch, 0);
  EXPECT_FALSE(job.tasks[1].reused);
  EXPECT_EQ(job.decisions[0].effect, "");
  EXPECT_EQ(job.attempts[1].first_step, -1) << "where its training began is not known";
}

TEST_F(MigrationTest, ARunningJobGoesOn) {
  const auto snapshot = store_->LoadSnapshot();
  ASSERT_TRUE(snapshot.ok()) << snapshot.status();
  ASSERT_EQ(snapshot->active.size(), 1u);
  EXPECT_EQ(snapshot->last_attempt, 10);
  Job job = snapshot->active[0];
  EXPECT_EQ(job.id, "runs-1");
  EXPECT_EQ(job.attempts[1].ended_at, absl::InfiniteFuture());
  // The Job can be written by today's rules.
  ++job.version;
  job.tasks[1].row_share = 0.5;
  job.tasks[1].retry_batch = 16;
  Plan& plan = job.plans.emplace_back();
  plan.revision = 1;
  plan.folds = 1;
  plan.models = 2;
  plan.epochs = 12;
  plan.reserve = absl::Seconds(8);
  plan.at = absl::FromUnixSeconds(1);
  plan.row_share = 0.5;
  job.tasks.push_back(job.tasks[1]);
  job.tasks.back().trial = 2;
  job.tasks.back().seed = 1;
  job.tasks.back().checkpoint.reset();
  const auto written = store_->Commit(Change({job}));
  ASSERT_TRUE(written.ok()) << written;
  EXPECT_EQ(Describe(*store_->GetJob("runs-1")), Describe(job));
  EXPECT_EQ(store_->GetMetrics("done-1", 0, 10, "")->size(), 1u);
  EXPECT_TRUE(*store_->HasOwner("bob"));
  EXPECT_EQ(store_->FindByRequest("ann", "r1")->id, "done-1");
}

TEST_F(MigrationTest, EveryVersionOpensAsTheFirstDoes) {
  for (size_t version = 2; version <= Migrations().size(); ++version) {
    const auto store = OpenStore(Fill(version));
    for (const char* const id : {"done-1", "runs-1"}) {
      EXPECT_EQ(Describe(*store->GetJob(id)), Describe(*store_->GetJob(id))) << version;
    }
    EXPECT_EQ(store->LoadSnapshot()->last_attempt, 10);
  }
}

}  // namespace
}  // namespace traind
