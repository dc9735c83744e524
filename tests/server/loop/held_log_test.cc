// A program beside traind that reads its database and keeps the transaction open.
#include <absl/strings/str_cat.h>
#include <absl/synchronization/notification.h>
#include <absl/time/clock.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <memory>
#include <string>
#include <utility>

#include "server/loop/control_loop.h"
#include "server/store/sqlite.h"
#include "server/store/sqlite_store.h"
#include "tests/server/loop/no_workers.h"

namespace traind {
namespace {

using sqlite::Connection;
using testing::HasSubstr;
using testing::Not;

constexpr int64_t kLimit = 64 << 10;
constexpr int kMostSubmits = 1000;
constexpr char kWarning[] = "another program keeps a read transaction of traind.db open";

class HeldLogTest : public testing::Test {
 protected:
  HeldLogTest() {
    char folder[] = "/tmp/held_logXXXXXX";
    options_.state_dir = mkdtemp(folder);
    options_.checkpoint_idle = absl::Milliseconds(10);
    options_.checkpoint_bytes = kLimit / 4;
    options_.most_log_bytes = kLimit;
    store_ = SqliteStore::Open(Database()).value();
    loop_ = ControlLoop::Create(options_, store_.get(), &clock_).value();
    loop_->Start(&gateway_);
  }
  ~HeldLogTest() override {
    loop_.reset();
    store_.reset();
    EXPECT_EQ(system(("rm -rf " + options_.state_dir).c_str()), 0);
  }
  std::string Database() const { return options_.state_dir + "/traind.db"; }
  // Submits Jobs until the log is as the test wants it, or too many were submitted.
  template <typename Condition>
  bool SubmitUntil(Condition log_is) {
    for (int i = 0; i < kMostSubmits; ++i) {
      if (log_is(loop_->figures().log_bytes)) return true;
      Job job;
      job.id = absl::StrCat("t-", ++submits_);
      job.spec.name = "t";
      job.spec.metric = "accuracy";
      job.spec_json = "{}";
      job.spec_text = std::string(kLimit / 4, 'x');
      job.spec_sha256 = "0";
      absl::Notification done;
      loop_->Submit(std::move(job), [&](const Reply& reply) {
        EXPECT_TRUE(reply.status.ok()) << reply.status;
        done.Notify();
      });
      done.WaitForNotification();
    }
    return false;
  }

  LoopOptions options_;
  const Clock& clock_ = SystemClock();
  NoWorkers gateway_;
  std::unique_ptr<SqliteStore> store_;
  std::unique_ptr<ControlLoop> loop_;
  int submits_ = 0;
};

TEST_F(HeldLogTest, AForeignTransactionIsWarnedOfAndTheLogFallsBackOnceItEnds) {
  testing::internal::CaptureStderr();
  const auto reader = Connection::Open(Database(), Connection::Mode::kReadOnly).value();
  ASSERT_EQ(reader->Execute("BEGIN; SELECT COUNT(*) FROM jobs"), absl::OkStatus());
  EXPECT_TRUE(SubmitUntil([](int64_t bytes) { return bytes > 32 * kLimit; }));
  // The loop looks at the log without haste.
  const absl::Time end = absl::Now() + absl::Seconds(2);
  EXPECT_TRUE(SubmitUntil([end](int64_t) {
    absl::SleepFor(absl::Milliseconds(20));
    return absl::Now() > end;
  }));
  const std::string held = testing::internal::GetCapturedStderr();
  EXPECT_THAT(held, HasSubstr(kWarning));
  int warnings = 0;
  for (size_t at = held.find(kWarning); at != std::string::npos; at = held.find(kWarning, at + 1)) {
    ++warnings;
  }
  EXPECT_LE(warnings, 6) << "each doubling is told once";

  testing::internal::CaptureStderr();
  ASSERT_EQ(reader->Execute("COMMIT"), absl::OkStatus());
  EXPECT_TRUE(SubmitUntil([](int64_t bytes) { return bytes < kLimit; }));
  loop_->Stop();
  const std::string freed = testing::internal::GetCapturedStderr();
  EXPECT_THAT(freed, HasSubstr("no reader holds the write-ahead log"));
}

TEST_F(HeldLogTest, WithoutSuchATransactionNothingIsWarnedOf) {
  testing::internal::CaptureStderr();
  SubmitUntil([this](int64_t) { return submits_ == 200; });
  loop_->Stop();
  EXPECT_THAT(testing::internal::GetCapturedStderr(), Not(HasSubstr(kWarning)));
}

}  // namespace
}  // namespace traind
