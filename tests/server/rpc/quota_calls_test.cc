// Quotas over the wire: what is refused and why, and what is told of those that stand.
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

constexpr int64_t kMinute = 60, kDay = 86'400, kYear = 366 * kDay;

class QuotaCallsTest : public testing::Test {
 protected:
  // 100 s a day.
  static v1::Quota Quota(const std::string& owner, const std::string& label = "") {
    v1::Quota quota;
    quota.mutable_subject()->set_owner(owner);
    quota.mutable_subject()->set_label(label);
    quota.mutable_allowance()->set_seconds(100);
    quota.mutable_period()->set_seconds(kDay);
    return quota;
  }
  grpc::Status Set(const v1::Quota& quota, bool add = true, v1::QuotaState* reply = nullptr) {
    grpc::ClientContext context;
    v1::SetQuotaRequest request;
    *request.mutable_quota() = quota;
    request.set_add(add);
    v1::QuotaState state;
    return house_.client().SetQuota(&context, request, reply != nullptr ? reply : &state);
  }
  grpc::Status Remove(const v1::QuotaSubject& subject) {
    grpc::ClientContext context;
    v1::RemoveQuotaRequest request;
    *request.mutable_subject() = subject;
    v1::RemoveQuotaReply reply;
    return house_.client().RemoveQuota(&context, request, &reply);
  }
  grpc::Status List(const v1::ListQuotasRequest& request, v1::ListQuotasReply* reply) {
    grpc::ClientContext context;
    return house_.client().ListQuotas(&context, request, reply);
  }
  grpc::Status ListOne(const v1::QuotaSubject& subject, v1::ListQuotasReply* reply) {
    v1::ListQuotasRequest request;
    *request.mutable_subject() = subject;
    return List(request, reply);
  }
  std::vector<std::string> All() {
    v1::ListQuotasReply reply;
    EXPECT_TRUE(List({}, &reply).ok());
    std::vector<std::string> names;
    for (const v1::QuotaState& state : reply.quotas()) {
      names.push_back(state.quota().subject().owner() + state.quota().subject().label());
    }
    return names;
  }
  static v1::QuotaSubject Owner(const std::string& owner) { return Quota(owner).subject(); }

  RpcHouse house_;
};

TEST_F(QuotaCallsTest, AnOwnerWhomNobodyKnowsIsAddedOnRequestAlone) {
  const grpc::Status refused = Set(Quota("ann"), /*add=*/false);
  EXPECT_EQ(refused.error_code(), StatusCode::NOT_FOUND);
  EXPECT_THAT(refused.error_message(), HasSubstr("ann is not known"));
  EXPECT_THAT(All(), ElementsAre());
  v1::QuotaState state;
  ASSERT_TRUE(Set(Quota("ann"), true, &state).ok());
  EXPECT_EQ(state.quota().subject().owner(), "ann");
  EXPECT_EQ(state.quota().allowance().seconds(), 100);
  EXPECT_EQ(state.quota().period().seconds(), kDay);
  EXPECT_EQ(state.used_s(), 0);
  EXPECT_EQ(state.left_s(), 100);
  EXPECT_FALSE(state.has_free_at());
  EXPECT_THAT(All(), ElementsAre("ann"));
}

TEST_F(QuotaCallsTest, AnOwnerWithAJobOrAQuotaIsKnown) {
  house_.Submit(house_.GoodSpec());
  EXPECT_TRUE(Set(Quota("local"), /*add=*/false).ok());
  ASSERT_TRUE(Set(Quota("ann")).ok());
  v1::Quota more = Quota("ann");
  more.mutable_allowance()->set_seconds(300);
  v1::QuotaState state;
  ASSERT_TRUE(Set(more, /*add=*/false, &state).ok());
  EXPECT_EQ(state.left_s(), 300);
  EXPECT_EQ(All().size(), 2u) << "changed, not doubled";
}

TEST_F(QuotaCallsTest, ALabelNeedsNobodyToBeThereFirst) {
  ASSERT_TRUE(Set(Quota("", "team=vision"), /*add=*/false).ok());
  EXPECT_THAT(All(), ElementsAre("team=vision"));
  v1::ListQuotasReply reply;
  ASSERT_TRUE(ListOne(Quota("", "team=vision").subject(), &reply).ok());
  EXPECT_EQ(reply.quotas_size(), 1);
  EXPECT_TRUE(Remove(Quota("", "team=vision").subject()).ok());
  EXPECT_THAT(All(), ElementsAre());
}

TEST_F(QuotaCallsTest, ASubjectIsAnOwnerOrALabelInEveryCall) {
  for (const v1::Quota& quota :
       {Quota(""), Quota("ann", "team=vision"), Quota("", "team"), Quota("", "=vision")}) {
    const std::string subject = quota.subject().ShortDebugString();
    const grpc::Status set = Set(quota), removed = Remove(quota.subject());
    EXPECT_EQ(set.error_code(), StatusCode::INVALID_ARGUMENT) << subject;
    EXPECT_THAT(set.error_message(), HasSubstr("subject")) << subject;
    EXPECT_EQ(removed.error_code(), StatusCode::INVALID_ARGUMENT) << subject;
    v1::ListQuotasReply reply;
    EXPECT_EQ(ListOne(quota.subject(), &reply).error_code(), StatusCode::INVALID_ARGUMENT)
        << subject;
  }
  EXPECT_THAT(All(), ElementsAre());
}

TEST_F(QuotaCallsTest, AnAllowanceIsNotNegative) {
  v1::Quota quota = Quota("ann");
  quota.mutable_allowance()->set_seconds(-1);
  const grpc::Status refused = Set(quota);
  EXPECT_EQ(refused.error_code(), StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(refused.error_message(), HasSubstr("allowance"));
  // None at all is one: nothing may be trained.
  quota.mutable_allowance()->set_seconds(0);
  v1::QuotaState state;
  ASSERT_TRUE(Set(quota, true, &state).ok());
  EXPECT_EQ(state.left_s(), 0);
}

TEST_F(QuotaCallsTest, APeriodIsAMinuteToAYear) {
  const auto with_period = [](int64_t seconds) {
    v1::Quota quota = Quota("ann");
    quota.mutable_period()->set_seconds(seconds);
    return quota;
  };
  for (const int64_t seconds : {int64_t{0}, -kDay, kMinute - 1, kYear + 1}) {
    const grpc::Status refused = Set(with_period(seconds));
    EXPECT_EQ(refused.error_code(), StatusCode::INVALID_ARGUMENT) << seconds;
    EXPECT_THAT(refused.error_message(), HasSubstr("period")) << seconds;
  }
  for (const int64_t seconds : {kMinute, kYear}) {
    EXPECT_TRUE(Set(with_period(seconds)).ok()) << seconds;
  }
}

TEST_F(QuotaCallsTest, OneIsListedByItsSubject) {
  ASSERT_TRUE(Set(Quota("ann")).ok());
  ASSERT_TRUE(Set(Quota("bob")).ok());
  v1::ListQuotasReply reply;
  ASSERT_TRUE(ListOne(Owner("bob"), &reply).ok());
  ASSERT_EQ(reply.quotas_size(), 1);
  EXPECT_EQ(reply.quotas(0).quota().subject().owner(), "bob");
  const grpc::Status unknown = ListOne(Owner("cid"), &reply);
  EXPECT_EQ(unknown.error_code(), StatusCode::NOT_FOUND);
  EXPECT_THAT(unknown.error_message(), HasSubstr("is not known"));
  house_.Submit(house_.GoodSpec());
  const grpc::Status none = ListOne(Owner("local"), &reply);
  EXPECT_EQ(none.error_code(), StatusCode::NOT_FOUND);
  EXPECT_THAT(none.error_message(), HasSubstr("local has no quota"));
}

TEST_F(QuotaCallsTest, WhatIsRemovedIsGone) {
  ASSERT_TRUE(Set(Quota("ann")).ok());
  EXPECT_TRUE(Remove(Owner("ann")).ok());
  EXPECT_THAT(All(), ElementsAre());
  const grpc::Status again = Remove(Owner("ann"));
  EXPECT_EQ(again.error_code(), StatusCode::NOT_FOUND);
  EXPECT_THAT(again.error_message(), HasSubstr("ann has no quota"));
}

// Time that was used before there was a quota counts in it.
TEST_F(QuotaCallsTest, EarlierUseWithinThePeriodCounts) {
  const absl::Time now = house_.loop().Now();
  v1::Job job = house_.Get(house_.Submit(house_.GoodSpec()));
  Job stored = *house_.store().GetJob(job.id());
  ++stored.version;
  Attempt& attempt = stored.attempts.emplace_back();
  attempt.id = 1;
  attempt.fold = 0;
  attempt.worker = "w";
  attempt.slots = {0, 1};
  attempt.started_at = now - absl::Seconds(40);
  attempt.ended_at = now - absl::Seconds(10);
  stored.tasks[1].attempt = 1;
  stored.tasks[1].attempts = 1;
  Mutations mutations;
  mutations.jobs.push_back(std::make_shared<const Job>(stored));
  ASSERT_TRUE(house_.store().Commit(mutations).ok());
  v1::QuotaState state;
  ASSERT_TRUE(Set(Quota("local"), false, &state).ok());
  EXPECT_NEAR(state.used_s(), 60, 1e-6);
  EXPECT_NEAR(state.left_s(), 40, 1e-6);
  EXPECT_EQ(state.warned_percent(), 50);
}

}  // namespace
}  // namespace traind
