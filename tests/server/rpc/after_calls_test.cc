// What a Submit makes of `after`, and what the calls tell of a Job that waits.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/server/rpc/rpc_house.h"

namespace traind {
namespace {

using grpc::StatusCode;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class AfterCallsTest : public testing::Test {
 protected:
  v1::JobSpec After(const std::vector<std::string>& jobs, const std::string& end = "") {
    v1::JobSpec spec = house_.GoodSpec("later");
    for (const std::string& job : jobs) spec.mutable_after()->add_jobs(job);
    if (!end.empty()) spec.mutable_after()->set_end(end);
    return spec;
  }
  void Cancel(const std::string& id) {
    grpc::ClientContext context;
    v1::CancelJobRequest request;
    request.set_id(id);
    v1::Job job;
    ASSERT_TRUE(house_.client().CancelJob(&context, request, &job).ok());
  }
  grpc::Status Plan(const v1::JobSpec& spec) {
    grpc::ClientContext context;
    v1::PlanRequest request;
    *request.mutable_spec() = spec;
    v1::PlanReply reply;
    return house_.client().Plan(&context, request, &reply);
  }
  grpc::Status Submit(const v1::JobSpec& spec) { return house_.Submit(spec, "", &reply_); }

  RpcHouse house_;
  v1::SubmitReply reply_;
};

TEST_F(AfterCallsTest, AWaitingJobTellsWhatItWaitsForAndHasNoDeadlineYet) {
  const std::string first = house_.Submit(house_.GoodSpec());
  const std::string id = house_.Submit(After({"digits", first}));  // a name, and the id again
  v1::Job job = house_.Get(id);
  EXPECT_EQ(job.state(), v1::JOB_STATE_QUEUED);
  EXPECT_EQ(job.pending_reason(), v1::PENDING_REASON_OTHER_JOBS);
  EXPECT_EQ(job.waits_for(), "the end of job " + first);
  EXPECT_THAT(job.after(), ElementsAre(first));
  EXPECT_FALSE(job.has_runnable_at());
  EXPECT_FALSE(job.has_deadline());
  EXPECT_TRUE(house_.Get(first).has_runnable_at());
  grpc::ClientContext context;
  v1::ListJobsRequest list;
  v1::ListJobsReply listed;
  ASSERT_TRUE(house_.client().ListJobs(&context, list, &listed).ok());
  ASSERT_EQ(listed.jobs_size(), 2);
  EXPECT_THAT(listed.jobs(0).after(), ElementsAre(first));
  EXPECT_EQ(listed.jobs(0).waits_for(), "the end of job " + first);

  Cancel(first);
  job = house_.Get(id);
  EXPECT_EQ(job.state(), v1::JOB_STATE_CANCELLED);
  EXPECT_EQ(job.end_reason(), v1::JOB_END_REASON_AFTER_FAILED);
  EXPECT_EQ(job.end_message(), "it was to run after job " + first + ", which is CANCELLED");
}

TEST_F(AfterCallsTest, AnUnknownJobIsRefusedAndTheLikelyOneNamed) {
  const std::string first = house_.Submit(house_.GoodSpec());
  const grpc::Status unknown = Submit(After({"digit"}));
  EXPECT_EQ(unknown.error_code(), StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(unknown.error_message(), HasSubstr("after.jobs: "));
  EXPECT_THAT(unknown.error_message(), HasSubstr("did you mean 'digits'?"));
  EXPECT_EQ(Plan(After({"digit"})).error_message(), unknown.error_message());
  house_.Submit(house_.GoodSpec(), "another of that name");
  const grpc::Status two = Submit(After({"digits"}));
  EXPECT_EQ(two.error_code(), StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(two.error_message(), HasSubstr(first));
}

TEST_F(AfterCallsTest, AFailureThatHasHappenedIsRefusedAtOnce) {
  const std::string first = house_.Submit(house_.GoodSpec());
  Cancel(first);
  const grpc::Status failed = Submit(After({first}));
  EXPECT_EQ(failed.error_code(), StatusCode::FAILED_PRECONDITION);
  EXPECT_EQ(failed.error_message(),
            "after.jobs: job " + first + " is CANCELLED; with `end: any` its end will do");
  EXPECT_EQ(Plan(After({first})).error_message(), failed.error_message());
  ASSERT_TRUE(Submit(After({first}, "any")).ok());
  EXPECT_THAT(reply_.job().after(), IsEmpty());
  EXPECT_TRUE(reply_.job().has_runnable_at());
  EXPECT_TRUE(reply_.job().has_deadline());
}

TEST_F(AfterCallsTest, ARepeatedSubmitIsTheSameJobWhateverBecameOfTheOther) {
  const std::string first = house_.Submit(house_.GoodSpec());
  const std::string id = house_.Submit(After({first}), "monday");
  Cancel(first);
  EXPECT_EQ(house_.Submit(After({first}), "monday"), id);
}

}  // namespace
}  // namespace traind
