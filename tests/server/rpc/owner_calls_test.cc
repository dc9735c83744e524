// Whose Jobs a known caller may change, and for whom it may act.
#include <absl/synchronization/notification.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "tests/server/rpc/rpc_house.h"

namespace traind {
namespace {

using testing::HasSubstr;

class OwnerCallsTest : public testing::Test {
 protected:
  // Waits for the answer of a call that the loop gives.
  static absl::Status Await(const std::function<void(Done)>& call) {
    absl::Notification given;
    absl::Status status;
    call([&](const absl::Status& answer) {
      status = answer;
      given.Notify();
    });
    given.WaitForNotification();
    return status;
  }

  absl::Status Submit(const Caller& caller, const std::string& owner, v1::SubmitReply* reply) {
    v1::SubmitRequest request;
    *request.mutable_spec() = house_.GoodSpec();
    request.set_owner(owner);
    return Await(
        [&](Done done) { house_.calls().Submit(caller, request, reply, std::move(done)); });
  }

  template <typename Request>
  absl::Status Change(void (TrainingCalls::*call)(const Caller&, const Request&, v1::Job*, Done),
                      const Caller& caller) {
    Request request;
    request.set_id(job_);
    v1::Job reply;
    return Await(
        [&](Done done) { (house_.calls().*call)(caller, request, &reply, std::move(done)); });
  }

  // What each call that changes a Job answers this caller.
  std::vector<absl::Status> ChangeInEveryWay(const Caller& caller) {
    v1::PinJobRequest pin;
    pin.set_id(job_);
    pin.set_pinned(true);
    v1::Job pinned;
    std::vector<absl::Status> answers = {
        house_.calls().PinJob(caller, pin, &pinned), Change(&TrainingCalls::UpdateJob, caller),
        Change(&TrainingCalls::PauseJob, caller),    Change(&TrainingCalls::ResumeJob, caller),
        Change(&TrainingCalls::FinishJob, caller),   Change(&TrainingCalls::CancelJob, caller),
    };
    v1::ProposeTrialRequest propose;
    propose.set_id(job_);
    v1::ProposeTrialReply proposed;
    answers.push_back(Await([&](Done done) {
      house_.calls().ProposeTrial(caller, propose, &proposed, std::move(done));
    }));
    v1::DeleteJobRequest remove;
    remove.set_id(job_);
    v1::DeleteJobReply removed;
    answers.push_back(house_.calls().DeleteJob(caller, remove, &removed));
    return answers;
  }

  RpcHouse house_;
  std::string job_;
  const Caller ann_{"ann", Role::kUser}, bob_{"bob", Role::kUser}, root_{"root", Role::kAdmin};
};

TEST_F(OwnerCallsTest, AJobIsItsCallersWhoeverTheRequestNames) {
  v1::SubmitReply reply;
  ASSERT_EQ(Submit(ann_, "", &reply), absl::OkStatus());
  EXPECT_EQ(reply.job().owner(), "ann");
  const absl::Status other = Submit(ann_, "bob", &reply);
  EXPECT_TRUE(absl::IsPermissionDenied(other)) << other;
  EXPECT_THAT(std::string(other.message()), HasSubstr("only an admin acts for bob"));
  ASSERT_EQ(Submit(root_, "bob", &reply), absl::OkStatus());
  EXPECT_EQ(reply.job().owner(), "bob");
  ASSERT_EQ(Submit({}, "anybody", &reply), absl::OkStatus());
  EXPECT_EQ(reply.job().owner(), "anybody");
}

TEST_F(OwnerCallsTest, NobodyElseChangesAJobInAnyWay) {
  v1::SubmitReply reply;
  ASSERT_EQ(Submit(ann_, "", &reply), absl::OkStatus());
  job_ = reply.job().id();
  for (const absl::Status& answer : ChangeInEveryWay(bob_)) {
    EXPECT_TRUE(absl::IsPermissionDenied(answer)) << answer;
    EXPECT_THAT(std::string(answer.message()), HasSubstr("belongs to ann"));
  }
  v1::GetJobRequest get;
  get.set_id(job_);
  v1::Job seen;
  ASSERT_EQ(house_.calls().GetJob(get, &seen), absl::OkStatus());
  EXPECT_FALSE(seen.pinned());
  EXPECT_NE(seen.state(), v1::JOB_STATE_CANCELLED);
}

TEST_F(OwnerCallsTest, ItsOwnerAndAnAdminMay) {
  for (const Caller& caller : {ann_, root_, Caller()}) {
    v1::SubmitReply reply;
    ASSERT_EQ(Submit(caller, "ann", &reply), absl::OkStatus());
    job_ = reply.job().id();
    for (const absl::Status& answer : ChangeInEveryWay(caller)) {
      EXPECT_FALSE(absl::IsPermissionDenied(answer)) << answer;
    }
  }
}

}  // namespace
}  // namespace traind
