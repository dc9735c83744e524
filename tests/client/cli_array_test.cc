// Arrays of Jobs whose Jobs wait for each other (submit --array --at-once).
#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>
#include <grpcpp/grpcpp.h>

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "tests/client/cli_harness.h"

namespace traind {
namespace {

// Takes batches, and refuses some of their entries.
class BatchService final : public v1::TrainingService::Service {
 public:
  grpc::Status SubmitBatch(grpc::ServerContext*, const v1::SubmitBatchRequest* request,
                           v1::SubmitBatchReply* reply) override {
    absl::MutexLock lock(&mutex_);
    for (const v1::SubmitRequest& submit : request->submits()) {
      const int number = static_cast<int>(waits_.size());
      const v1::AfterSpec& after = submit.spec().after();
      waits_.push_back(absl::StrCat(absl::StrJoin(after.jobs(), ","), ":", after.end()));
      v1::SubmitOutcome& outcome = *reply->add_outcomes();
      outcome.set_status(refused.count(number) > 0 ? "INVALID_ARGUMENT" : "OK");
      if (refused.count(number) == 0) outcome.set_id(absl::StrCat("job-", number));
    }
    return grpc::Status::OK;
  }
  // "JOBS:END" for what each Job waits for.
  std::vector<std::string> waits() {
    absl::MutexLock lock(&mutex_);
    return waits_;
  }

  std::set<int> refused;

 private:
  absl::Mutex mutex_;
  std::vector<std::string> waits_ ABSL_GUARDED_BY(mutex_);
};

class CliArrayTest : public CliTest {
 protected:
  CliArrayTest() {
    int port = 0;
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
    builder.RegisterService(&batches_);
    batch_server_ = builder.BuildAndStart();
    default_server_ = absl::StrCat("127.0.0.1:", port);
  }
  Ran Submit(const std::vector<std::string>& more) {
    std::vector<std::string> args = {"submit", Path("job.yaml"), "--array", "data.seed=1..6"};
    args.insert(args.end(), more.begin(), more.end());
    return Run(args);
  }

  BatchService batches_;
  std::unique_ptr<grpc::Server> batch_server_;
};

TEST_F(CliArrayTest, EachJobWaitsForTheLastOneOfItsLaneThatWasNotRefused) {
  batches_.refused = {2};
  EXPECT_EQ(Submit({"--at-once", "2"}).code, 1);
  const std::vector<std::string> expected = {":",         ":",         "job-0:any",
                                             "job-1:any", "job-0:any", "job-3:any"};
  EXPECT_EQ(batches_.waits(), expected);
}

TEST_F(CliArrayTest, AtOnceAndAfterAreRefusedTogetherWithAdvice) {
  const Ran flag = Submit({"--at-once", "2", "--after", "first"});
  EXPECT_EQ(flag.code, 2);
  EXPECT_TRUE(Has(flag.err, "--after does not go together with --at-once")) << flag.err;
  EXPECT_TRUE(Has(flag.err, "`trainctl wait JOB` before")) << flag.err;
  Write("job.yaml", absl::StrCat(kCliSpec, "after: [first]\n"));
  const Ran field = Submit({"--at-once", "2"});
  EXPECT_EQ(field.code, 2);
  EXPECT_TRUE(Has(field.err, "`after` of the spec does not go together with --at-once"))
      << field.err;
  EXPECT_TRUE(batches_.waits().empty());
  // Without lanes every Job waits for it.
  EXPECT_EQ(Submit({}).code, 0);
  EXPECT_EQ(batches_.waits(), std::vector<std::string>(6, "first:"));
}

}  // namespace
}  // namespace traind
