#include <absl/strings/str_cat.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "tests/server/rpc/rpc_house.h"

namespace traind {
namespace {

using testing::HasSubstr;

v1::SubmitRequest RequestOf(const v1::JobSpec& spec, const std::string& request_id = "") {
  v1::SubmitRequest request;
  *request.mutable_spec() = spec;
  request.set_request_id(request_id);
  return request;
}

grpc::Status Send(RpcHouse& house, const v1::SubmitBatchRequest& request,
                  v1::SubmitBatchReply* reply) {
  grpc::ClientContext context;
  return house.client().SubmitBatch(&context, request, reply);
}

TEST(SubmitBatchTest, AllGoodEntriesAreStoredInOneCommitAndBadOnesHaveTheirOwnErrors) {
  RpcHouse house;
  const uint64_t commits = house.loop().figures().commits.count;
  v1::SubmitBatchRequest request;
  for (int i = 0; i < 100; ++i) {
    *request.add_submits() = RequestOf(house.GoodSpec(absl::StrCat("job-", i)));
  }
  request.mutable_submits(7)->mutable_spec()->mutable_data()->set_target("nobody");
  request.mutable_submits(8)->set_request_id(std::string(200, 'x'));
  request.mutable_submits(9)->set_owner("two words");
  v1::SubmitBatchReply reply;
  ASSERT_TRUE(Send(house, request, &reply).ok());
  ASSERT_EQ(reply.outcomes_size(), 100);
  std::set<std::string> ids;
  for (int i = 0; i < 100; ++i) {
    const v1::SubmitOutcome& outcome = reply.outcomes(i);
    if (i >= 7 && i <= 9) {
      EXPECT_EQ(outcome.status(), "INVALID_ARGUMENT") << i;
      EXPECT_TRUE(outcome.id().empty());
      continue;
    }
    EXPECT_EQ(outcome.status(), "OK") << outcome.message();
    EXPECT_TRUE(outcome.created());
    EXPECT_TRUE(ids.insert(outcome.id()).second);
    EXPECT_EQ(house.store().GetJob(outcome.id())->spec.name, absl::StrCat("job-", i));
  }
  EXPECT_THAT(reply.outcomes(7).message(), HasSubstr("nobody"));
  EXPECT_THAT(reply.outcomes(8).message(), HasSubstr("request_id"));
  EXPECT_THAT(reply.outcomes(9).message(), HasSubstr("owner"));
  EXPECT_EQ(house.loop().figures().commits.count - commits, 1u);
}

TEST(SubmitBatchTest, ARepeatedEntryAnswersItsJobAndAnotherSpecUnderItsKeyIsRefused) {
  RpcHouse house;
  v1::SubmitBatchRequest request;
  *request.add_submits() = RequestOf(house.GoodSpec("a"), "key-a");
  *request.add_submits() = RequestOf(house.GoodSpec("b"), "key-b");
  *request.add_submits() = RequestOf(house.GoodSpec("a"), "key-a");  // twice in one batch
  *request.add_submits() = RequestOf(house.GoodSpec("other"), "key-b");
  v1::SubmitBatchReply first;
  ASSERT_TRUE(Send(house, request, &first).ok());
  EXPECT_TRUE(first.outcomes(0).created());
  EXPECT_TRUE(first.outcomes(1).created());
  EXPECT_EQ(first.outcomes(2).id(), first.outcomes(0).id());
  EXPECT_FALSE(first.outcomes(2).created());
  EXPECT_EQ(first.outcomes(3).status(), "ALREADY_EXISTS");
  v1::SubmitBatchReply again;
  ASSERT_TRUE(Send(house, request, &again).ok());
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(again.outcomes(i).id(), first.outcomes(i).id());
    EXPECT_FALSE(again.outcomes(i).created());
  }
  EXPECT_EQ(again.outcomes(3).status(), "ALREADY_EXISTS");
  // A Submit of its own finds it as well.
  v1::SubmitReply single;
  ASSERT_TRUE(house.Submit(house.GoodSpec("b"), "key-b", &single).ok());
  EXPECT_EQ(single.job().id(), first.outcomes(1).id());
}

TEST(SubmitBatchTest, EntriesThatShareACheckAreStoredAsSingleSubmitsAre) {
  RpcHouse house;
  v1::SubmitBatchRequest request;
  for (const char* name : {"a", "b", "a", "two words", "", "c"}) {
    *request.add_submits() = RequestOf(house.GoodSpec(name));
  }
  request.mutable_submits(2)->set_owner("ann");
  v1::SubmitBatchReply reply;
  ASSERT_TRUE(Send(house, request, &reply).ok());
  for (const int i : {0, 1, 2, 4, 5}) {
    v1::SubmitReply single;
    ASSERT_TRUE(house.Submit(request.submits(i).spec(), "", &single).ok());
    const auto alone = house.store().GetJob(single.job().id());
    const auto entry = house.store().GetJob(reply.outcomes(i).id());
    ASSERT_TRUE(alone.ok() && entry.ok()) << i;
    EXPECT_EQ(entry->spec_json, alone->spec_json);
    EXPECT_EQ(entry->spec_sha256, alone->spec_sha256);
    EXPECT_EQ(entry->asked_sha256, alone->asked_sha256);
    EXPECT_EQ(entry->spec.name, alone->spec.name);
    EXPECT_EQ(entry->spec.cache_key, alone->spec.cache_key);
    EXPECT_EQ(entry->spec.speed_key, alone->spec.speed_key);
    EXPECT_EQ(entry->owner, i == 2 ? "ann" : "local");
  }
  EXPECT_EQ(reply.outcomes(3).status(), "INVALID_ARGUMENT");
  EXPECT_THAT(reply.outcomes(3).message(), HasSubstr("is no name"));
}

TEST(SubmitBatchTest, ItsSizeIsLimited) {
  RpcHouse house;
  v1::SubmitBatchReply reply;
  EXPECT_EQ(Send(house, {}, &reply).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  v1::SubmitBatchRequest request;
  for (int i = 0; i < 1001; ++i) request.add_submits();
  const grpc::Status many = Send(house, request, &reply);
  EXPECT_EQ(many.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(many.error_message(), HasSubstr("1 to 1000"));
}

TEST(SubmitRateOfCallsTest, AnOwnerWhoSubmitsTooMuchIsToldWhenToTryAgainAndOthersAreNot) {
  RpcHouse house({}, /*submits_per_s=*/1.0 / 3600);  // one at once
  v1::SubmitReply single;
  EXPECT_TRUE(house.Submit(house.GoodSpec("a"), "", &single).ok());
  const grpc::Status refused = house.Submit(house.GoodSpec("b"), "", &single);
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(refused.error_message(), HasSubstr("submit-rate: local"));
  EXPECT_THAT(refused.error_message(), HasSubstr("may come in "));
  v1::SubmitBatchRequest request;
  *request.add_submits() = RequestOf(house.GoodSpec("c"));
  v1::SubmitBatchReply reply;
  EXPECT_EQ(Send(house, request, &reply).error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(house.loop().views().Active().size(), 1u);
  *request.add_submits() = RequestOf(house.GoodSpec("d"));
  for (v1::SubmitRequest& submit : *request.mutable_submits()) submit.set_owner("ann");
  EXPECT_TRUE(Send(house, request, &reply).ok());
  EXPECT_EQ(Send(house, request, &reply).error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  v1::PredictRequest predict;
  predict.set_id(single.job().id());
  v1::SubmitReply predicted;
  grpc::ClientContext context;
  EXPECT_EQ(house.client().Predict(&context, predict, &predicted).error_code(),
            grpc::StatusCode::RESOURCE_EXHAUSTED);
}

TEST(SubmitRateOfCallsTest, ABatchThatIsRefusedForOneOwnerTakesNothingFromTheOthers) {
  RpcHouse house({}, /*submits_per_s=*/1.0 / 3600);  // one at once
  v1::SubmitBatchRequest request;
  for (const char* owner : {"ann", "zoe"}) {
    v1::SubmitRequest* submit = request.add_submits();
    *submit = RequestOf(house.GoodSpec("a"));
    submit->set_owner(owner);
  }
  v1::SubmitBatchRequest of_zoe;
  *of_zoe.add_submits() = request.submits(1);
  v1::SubmitBatchReply reply;
  ASSERT_TRUE(Send(house, of_zoe, &reply).ok());
  const grpc::Status refused = Send(house, request, &reply);
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(refused.error_message(), HasSubstr("submit-rate: zoe"));
  request.mutable_submits()->DeleteSubrange(1, 1);
  const grpc::Status of_ann = Send(house, request, &reply);
  EXPECT_TRUE(of_ann.ok()) << of_ann.error_message();
}

TEST(SubmitRateOfCallsTest, AnOwnerWhoIsNamedAndOneWhoIsNotMayBeTheSame) {
  RpcHouse house({}, /*submits_per_s=*/1.0 / 30);  // two at once
  v1::SubmitBatchRequest request;
  for (const char* owner : {"", "local", ""}) {
    v1::SubmitRequest* submit = request.add_submits();
    *submit = RequestOf(house.GoodSpec("a"));
    submit->set_owner(owner);
  }
  v1::SubmitBatchReply reply;
  ASSERT_TRUE(Send(house, request, &reply).ok());  // a full bucket gives more than it holds
  *request.mutable_submits() = {};
  *request.add_submits() = RequestOf(house.GoodSpec("b"));
  EXPECT_EQ(Send(house, request, &reply).error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
}

TEST(SubmitRateOfCallsTest, WhatWasSubmittedBeforeIsAnsweredWhateverTheRateIs) {
  RpcHouse house({}, /*submits_per_s=*/1.0 / 3600);  // one at once
  v1::SubmitReply first, again;
  ASSERT_TRUE(house.Submit(house.GoodSpec("a"), "r1", &first).ok());
  const grpc::Status repeated = house.Submit(house.GoodSpec("a"), "r1", &again);
  EXPECT_TRUE(repeated.ok()) << repeated.error_message();
  EXPECT_EQ(again.job().id(), first.job().id());
  v1::SubmitBatchRequest request;
  *request.add_submits() = RequestOf(house.GoodSpec("a"));
  request.mutable_submits(0)->set_request_id("r1");
  v1::SubmitBatchReply reply;
  const grpc::Status batch = Send(house, request, &reply);
  EXPECT_TRUE(batch.ok()) << batch.error_message();
  ASSERT_EQ(reply.outcomes_size(), 1);
  EXPECT_EQ(reply.outcomes(0).id(), first.job().id());
}

TEST(OwnerJobsOfCallsTest, ABatchThatIsTooManyStoresNothingAndWhatIsKnownIsAnswered) {
  CoreOptions core;
  core.max_owner_jobs = 3;
  RpcHouse house({}, 0, core);
  v1::SubmitBatchRequest request;
  for (const char* name : {"a", "b", "c"}) {
    *request.add_submits() = RequestOf(house.GoodSpec(name), name);
  }
  v1::SubmitReply single;
  ASSERT_TRUE(house.Submit(house.GoodSpec("a"), "a", &single).ok());
  ASSERT_TRUE(house.Submit(house.GoodSpec("other"), "", &single).ok());
  v1::SubmitBatchReply reply;
  ASSERT_TRUE(Send(house, request, &reply).ok());
  EXPECT_EQ(reply.outcomes(0).status(), "OK");
  EXPECT_FALSE(reply.outcomes(0).created());
  for (int i = 1; i < 3; ++i) {
    EXPECT_EQ(reply.outcomes(i).status(), "RESOURCE_EXHAUSTED");
    EXPECT_THAT(reply.outcomes(i).message(), HasSubstr("owner-jobs: local has 2 Jobs"));
  }
  EXPECT_EQ(house.loop().views().Active().size(), 2u);
  request.mutable_submits()->RemoveLast();
  ASSERT_TRUE(Send(house, request, &reply).ok());
  EXPECT_TRUE(reply.outcomes(1).created());
  const grpc::Status refused = house.Submit(house.GoodSpec("d"), "", &single);
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(refused.error_message(), HasSubstr("--owner-jobs"));
  EXPECT_TRUE(house.Submit(house.GoodSpec("a"), "a", &single).ok());
}

TEST(SubmitBatchTest, WhereTheCommitFailsEveryEntryIsToldSo) {
  RpcHouse house;
  house.store().FailCommits(absl::ResourceExhaustedError("full"));
  v1::SubmitBatchRequest request;
  *request.add_submits() = RequestOf(house.GoodSpec("a"));
  *request.add_submits() = RequestOf(house.GoodSpec("b"));
  v1::SubmitBatchReply reply;
  ASSERT_TRUE(Send(house, request, &reply).ok());
  for (const v1::SubmitOutcome& outcome : reply.outcomes()) {
    EXPECT_EQ(outcome.status(), "RESOURCE_EXHAUSTED");
    EXPECT_TRUE(outcome.id().empty());
  }
  house.store().FailCommits(absl::OkStatus());
}

}  // namespace
}  // namespace traind
