// trainctl propose: trials from outside.
#include "tests/client/cli_harness.h"

namespace traind {
namespace {

class CliProposeTest : public CliTest {
 protected:
  CliProposeTest() {
    service_.on_propose = [this](const v1::ProposeTrialRequest& request,
                                 v1::ProposeTrialReply* reply) {
      asked_.push_back(request);
      if (--unavailable_ >= 0) return grpc::Status(grpc::StatusCode::UNAVAILABLE, "starting");
      v1::Trial& trial = *reply->mutable_trial();
      trial.set_index(3);
      trial.set_name("lightgbm-4");
      trial.set_kind("lightgbm");
      trial.set_state(v1::TRIAL_STATE_WAITING);
      trial.set_proposed(true);
      *trial.mutable_settings() = request.settings();
      reply->set_created(created_);
      return answer_;
    };
  }

  std::vector<v1::ProposeTrialRequest> asked_;
  bool created_ = true;
  int unavailable_ = 0;  // calls to come that find traind starting
  grpc::Status answer_ = grpc::Status::OK;
};

TEST_F(CliProposeTest, ATrialIsProposedAndTold) {
  const Ran ran = Run({"propose", "digits", "num_leaves=31", "learning_rate=0.05",
                       "model.lightgbm.objective=a=b", "--request-id", "monday"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(ran.out,
            "trial 3 WAITING (new)  learning_rate=0.05 model.lightgbm.objective=a=b "
            "num_leaves=31\n");
  EXPECT_TRUE(Has(ran.err, "trials digits-7f3k2a")) << ran.err;
  ASSERT_EQ(asked_.size(), 1u);
  EXPECT_EQ(asked_[0].id(), "digits-7f3k2a");
  EXPECT_EQ(asked_[0].request_id(), "monday");
  EXPECT_EQ(asked_[0].settings().size(), 3u);
  EXPECT_EQ(asked_[0].settings().at("num_leaves"), "31");
  EXPECT_EQ(asked_[0].settings().at("model.lightgbm.objective"), "a=b");
}

TEST_F(CliProposeTest, ATrialThatWasThereIsToldAsSuch) {
  created_ = false;
  const Ran ran = Run({"propose", "digits"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(ran.out, "trial 3 WAITING (was there already)\n");
}

// Scripts read this format: fields may be added, but not changed.
TEST_F(CliProposeTest, TheJsonIsAsInTheGoldenFile) {
  const Ran json = Run({"propose", "digits", "num_leaves=31", "learning_rate=0.05", "-o", "json"});
  EXPECT_EQ(json.code, 0) << json.err;
  EXPECT_EQ(json.out, Text("tests/client/golden/proposed_trial.json"));
  EXPECT_EQ(json.err, "");
  EXPECT_EQ(Run({"propose", "digits", "-o", "name"}).out, "lightgbm-4\n");
  EXPECT_TRUE(Has(Run({"propose", "digits", "-o", "yaml"}).out, "  state: WAITING\n"));
}

TEST_F(CliProposeTest, EachCallHasARequestIdAndRepeatsItWhileTraindIsAway) {
  unavailable_ = 2;
  EXPECT_EQ(Run({"propose", "digits", "x=1"}).code, 0);
  ASSERT_EQ(asked_.size(), 3u);
  EXPECT_FALSE(asked_[0].request_id().empty());
  EXPECT_EQ(asked_[0].request_id(), asked_[2].request_id());
  EXPECT_EQ(Run({"propose", "digits", "x=1"}).code, 0);
  EXPECT_NE(asked_[3].request_id(), asked_[0].request_id());
}

TEST_F(CliProposeTest, WhatTraindRefusesIsTold) {
  answer_ = grpc::Status(grpc::StatusCode::INVALID_ARGUMENT, "settings.leaves: unknown");
  const Ran refused = Run({"propose", "digits", "leaves=31"});
  EXPECT_EQ(refused.code, 2);
  EXPECT_TRUE(Has(refused.err, "settings.leaves: unknown")) << refused.err;
  EXPECT_EQ(refused.out, "");
  EXPECT_EQ(Run({"propose", "nobody", "leaves=31"}).code, 5);
}

TEST_F(CliProposeTest, WordsThatAreNoSettingsAreRefusedBeforeTheCall) {
  const Ran word = Run({"propose", "digits", "num_leaves", "31"});
  EXPECT_EQ(word.code, 2);
  EXPECT_TRUE(Has(word.err, "'num_leaves' is no setting; write it like learning_rate=0.05"))
      << word.err;
  const Ran twice = Run({"propose", "digits", "num_leaves=31", "num_leaves=32"});
  EXPECT_EQ(twice.code, 2);
  EXPECT_TRUE(Has(twice.err, "num_leaves is set twice")) << twice.err;
  EXPECT_TRUE(asked_.empty());
}

}  // namespace
}  // namespace traind
