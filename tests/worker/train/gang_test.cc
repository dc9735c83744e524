// Ranks that train together, one thread each.
#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_replace.h>
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "common/data/table/npy.h"
#include "tests/worker/device/limited_memory.h"
#include "tests/worker/train/trainer_fixture.h"
#include "worker/device/collective.h"
#include "worker/device/guard.h"
#include "worker/task/failure.h"
#include "worker/train/gang.h"

namespace traind {
namespace {

class TransportTest : public GangTest, public testing::WithParamInterface<const char*> {};
INSTANTIATE_TEST_SUITE_P(Transports, TransportTest, testing::Values("shm", "gloo"));

TEST_P(TransportTest, TwoRanksTrainAsOneWithTwiceTheBatch) {
  RecordingSink alone, gang;
  ASSERT_TRUE(Run(Exact(1, 32), alone).ok());
  rp::Train two = Exact(2, 16);
  two.spec_json =
      Spec(absl::StrCat("\"patience\":0,\"collective\":\"", GetParam(), "\""), /*dropout=*/0);
  RunGang(two, 2, gang);
  EXPECT_TRUE(absl::StrContains(gang.All<rp::Started>()[0].resolved_settings,
                                absl::StrCat("collective=", GetParam())));
  EXPECT_EQ(gang.All<rp::Started>()[0].steps_per_epoch, 13);
  EXPECT_EQ(gang.All<rp::Epoch>().size(), 3u);
  ExpectNear(Tensors(alone), Tensors(gang), 2e-5f);
  EXPECT_NEAR(alone.All<rp::Epoch>()[2].val_loss, gang.All<rp::Epoch>()[2].val_loss, 1e-4);
}

TEST_P(TransportTest, MembersOfANetworkTrainInAGangAsAlone) {
  const auto spec = [](absl::string_view more) {
    return absl::StrReplaceAll(
        Spec(absl::StrCat("\"patience\":0", more), /*dropout=*/0),
        {{"\"dropout\":0", R"("dropout":0,"ensemble_members":3,"numeric_embedding":{})"}});
  };
  RecordingSink alone, gang;
  rp::Train one = Exact(1, 32), two = Exact(2, 16);
  one.spec_json = spec("");
  two.spec_json = spec(absl::StrCat(",\"collective\":\"", GetParam(), "\""));
  ASSERT_TRUE(Run(one, alone).ok());
  RunGang(two, 2, gang);
  ExpectNear(Tensors(alone), Tensors(gang), 2e-5f);
}

// Each rank answers for some of the validation rows, and what makes means of the answers is of all.
TEST_P(TransportTest, TransformedAnswersOfAGangAreThoseOfOneRank) {
  options_.classification = false;
  TableRows rows = MakeRows(options_);
  for (float& value : rows.train_target.numbers) value = std::exp((value - 1000) / 40);
  table_ = WriteState(state_, rows, MakeFolds(options_));
  const auto spec = [](absl::string_view more) {
    return Spec(absl::StrCat(R"("patience":0,"target_transform":"yeo_johnson")", more),
                /*dropout=*/0, R"("type":"regression","metric":"rmse")");
  };
  RecordingSink alone, gang;
  rp::Train one = Exact(1, 32), two = Exact(2, 16);
  one.spec_json = spec("");
  two.spec_json = spec(absl::StrCat(",\"collective\":\"", GetParam(), "\""));
  ASSERT_TRUE(Run(one, alone).ok());
  RunGang(two, 2, gang);
  const rp::FoldSaved by_one = alone.All<rp::FoldSaved>().back();
  const rp::FoldSaved by_two = gang.All<rp::FoldSaved>().back();
  EXPECT_NEAR(by_two.score, by_one.score, 1e-3 * by_one.score);
  for (const auto& [a, b] : {std::make_pair(by_one.oof, by_two.oof), {by_one.test, by_two.test}}) {
    const auto first = ReadNpyFloat(absl::StrCat(state_, "/", JobDir("job"), "/", a));
    const auto second = ReadNpyFloat(absl::StrCat(state_, "/", JobDir("job"), "/", b));
    ASSERT_TRUE(first.ok() && second.ok());
    ASSERT_EQ(first->values.size(), second->values.size());
    for (size_t i = 0; i < first->values.size(); ++i) {
      if (std::isnan(first->values[i])) continue;
      EXPECT_NEAR(second->values[i], first->values[i], 1e-3 * (1 + std::fabs(first->values[i])));
    }
  }
}

// Plain descent, so that the gradient's length counts: it is divided by the weights of all ranks.
TEST_P(TransportTest, ClassWeightsAddUpOverRanksAndPasses) {
  for (const bool handwritten : {true, false}) {
    const auto spec = [&](absl::string_view more) {
      return Spec(absl::StrCat(R"("patience":0,"loss":{"weights":[0.2,1,8]},"learning_rate":0.2,)",
                               R"("optimizer":{"kind":"sgd"},"paths":{"handwritten_backward":)",
                               handwritten ? "true" : "false", "}", more),
                  /*dropout=*/0);
    };
    RecordingSink alone, gang;
    rp::Train one = Exact(handwritten ? 1 : 3, 96), two = Exact(handwritten ? 2 : 4, 24);
    one.spec_json = spec("");
    two.spec_json = spec(absl::StrCat(R"(,"accumulation":2,"collective":")", GetParam(), "\""));
    ASSERT_TRUE(Run(one, alone).ok());
    RunGang(two, 2, gang);
    ExpectNear(Tensors(alone), Tensors(gang), 2e-5f);
  }
}

TEST_F(GangTest, ThreeRanksOfWhichSomeRunOutOfRowsDoNotHang) {
  RecordingSink alone, gang;
  ASSERT_TRUE(Run(Exact(1, 99), alone).ok());  // 398 = 4 x 99 + 2: the last batch has 2 rows
  RunGang(Exact(2, 33), 3, gang);
  ExpectNear(Tensors(alone), Tensors(gang), 2e-5f);
}

TEST_F(GangTest, ACheckpointOfOneRankGoesOnWithTwoAtTheSameGangBatch) {
  RecordingSink alone, first, gang;
  ASSERT_TRUE(Run(Exact(1, 32), alone).ok());
  ASSERT_TRUE(RunALittle(Exact(2, 32), first).ok());
  rp::Train rest = Exact(3, 0);
  rest.resume = first.All<rp::CheckpointSaved>().back().manifest;
  RunGang(rest, 2, gang);
  EXPECT_EQ(gang.All<rp::Started>()[0].batch, 16);
  EXPECT_EQ(gang.All<rp::Started>()[0].first_step, first.All<rp::CheckpointSaved>().back().step);
  EXPECT_TRUE(gang.All<rp::Decision>().empty());
  ExpectNear(Tensors(alone), Tensors(gang), 2e-5f);
}

TEST_F(GangTest, AStopThatRankZeroAloneHearsStopsAll) {
  rp::Train train = Exact(1, 16);
  train.epochs = 100'000;
  RecordingSink sink;
  RunGang(train, 2, sink, [&sink](TaskControl& control) {
    sink.Listen([&control](const rp::FromProcess& message) {
      if (std::holds_alternative<rp::Epoch>(message)) control.Apply(rp::Stop{1, true});
    });
  });
  EXPECT_EQ(sink.All<rp::FoldSaved>().back().stopped_by, StopCause::kUser);
}

TEST_F(GangTest, ThroughSharedMemoryARunIsTheSameBitForBit) {
  RecordingSink first, second;
  RunGang(Exact(1, 16), 2, first);
  RunGang(Exact(2, 16), 2, second);
  EXPECT_EQ(Tensors(first), Tensors(second));
}

class ManyTestRowsTest : public GangTest {
 protected:
  void SetUp() override {
    options_.test_rows = 40'000;  // several meetings of the ranks, the last one of fewer rows
    GangTest::SetUp();
  }
  std::vector<float> TestAnswersOf(const RecordingSink& sink) {
    const auto saved = sink.All<rp::FoldSaved>().back();
    EXPECT_TRUE(saved.last);
    const auto test = ReadNpyFloat(absl::StrCat(state_, "/", JobDir("job"), "/", saved.test));
    EXPECT_TRUE(test.ok()) << test.status().ToString();
    return test->values;
  }
};

TEST_F(ManyTestRowsTest, EachRankPredictsAPart) {
  RecordingSink alone, two, three;
  ASSERT_TRUE(Run(Exact(1, 48), alone).ok());
  RunGang(Exact(2, 24), 2, two);
  RunGang(Exact(3, 16), 3, three);
  const std::vector<float> expected = TestAnswersOf(alone);
  ASSERT_EQ(expected.size(), 40'000u * 3);
  for (const RecordingSink* const sink : {&two, &three}) {
    const std::vector<float> answers = TestAnswersOf(*sink);
    ASSERT_EQ(answers.size(), expected.size());
    for (size_t i = 0; i < expected.size(); ++i) ASSERT_NEAR(answers[i], expected[i], 1e-4) << i;
  }
}

TEST_F(GangTest, RanksTakeOneRateFromARangeTestAndAverageTheSameEpochs) {
  rp::Train train = Exact(1, 16);
  train.spec_json = Spec(R"("patience":0,"find_learning_rate":true,"swa":0.7)", /*dropout=*/0);
  RecordingSink first, second;
  RunGang(train, 2, first);
  train.attempt = 2;
  RunGang(train, 2, second);
  ASSERT_EQ(first.All<rp::Decision>().size(), 1u);
  EXPECT_EQ(first.All<rp::Decision>()[0].rule, DecisionRule::kLearningRate);
  EXPECT_EQ(Tensors(first), Tensors(second));
}

// Parts of a step are not exchanged; uneven shares have uneven numbers of parts.
TEST_P(TransportTest, PassesOfTwoRanksAddUpToOneBatch) {
  RecordingSink alone, gang;
  ASSERT_TRUE(Run(Exact(1, 90), alone).ok());  // 398 = 4 x 90 + 38: the last step has fewer passes
  rp::Train two = Exact(2, 15);
  two.spec_json =
      Spec(absl::StrCat("\"patience\":0,\"accumulation\":3,\"collective\":\"", GetParam(), "\""),
           /*dropout=*/0);
  RunGang(two, 2, gang);
  EXPECT_EQ(gang.All<rp::Started>()[0].steps_per_epoch, 5);
  ExpectNear(Tensors(alone), Tensors(gang), 2e-5f);
}

TEST_F(GangTest, ACheckpointOfTwoRanksGoesOnWithOneInTwoPassesAStep) {
  RecordingSink alone, first, rest_sink;
  ASSERT_TRUE(Run(Exact(1, 32), alone).ok());
  RunGang(Exact(2, 16), 2, first, [&first](TaskControl& control) {
    first.Listen([&control](const rp::FromProcess& message) {
      if (std::holds_alternative<rp::Probe>(message)) control.Apply(rp::Stop{2, false});
    });
  });
  rp::Train rest = Exact(3, 0);
  rest.resume = first.All<rp::CheckpointSaved>().back().manifest;
  ASSERT_TRUE(Run(rest, rest_sink).ok());
  EXPECT_EQ(rest_sink.All<rp::Started>()[0].batch, 16);
  EXPECT_EQ(rest_sink.All<rp::Started>()[0].steps_per_epoch, 13);
  EXPECT_TRUE(rest_sink.All<rp::Decision>().empty());
  ExpectNear(Tensors(alone), Tensors(rest_sink), 2e-5f);
}

// A gang of four that has lost two: the rows of a step stay, although the spec names the batch.
TEST_F(GangTest, WithFewerRanksThanAskedForAStepHasTheSameRows) {
  const auto asked_for_four = [](rp::Train train) {
    train.spec_json.insert(1, R"("resources":{"slots":4},)");
    return train;
  };
  RecordingSink alone, fresh, first, resumed;
  ASSERT_TRUE(Run(Exact(1, 32), alone).ok());
  RunGang(asked_for_four(Exact(2, 8)), 2, fresh);
  EXPECT_EQ(fresh.All<rp::Started>()[0].batch, 8);
  EXPECT_EQ(fresh.All<rp::Started>()[0].steps_per_epoch, 13);
  ExpectNear(Tensors(alone), Tensors(fresh), 2e-5f);
  RunGang(asked_for_four(Exact(3, 8)), 4, first, [&first](TaskControl& control) {
    first.Listen([&control](const rp::FromProcess& message) {
      if (std::holds_alternative<rp::Probe>(message)) control.Apply(rp::Stop{3, false});
    });
  });
  rp::Train rest = asked_for_four(Exact(4, 8));
  rest.resume = first.All<rp::CheckpointSaved>().back().manifest;
  RunGang(rest, 2, resumed);
  EXPECT_EQ(resumed.All<rp::Started>()[0].steps_per_epoch, 13);
  EXPECT_TRUE(resumed.All<rp::Decision>().empty());
  ExpectNear(Tensors(alone), Tensors(resumed), 2e-5f);
}

TEST_F(GangTest, ARankThatRunsOutOfMemoryTakesMorePassesAndTheGangGoesOn) {
  RecordingSink alone, gang;
  ASSERT_TRUE(Run(Exact(1, 32), alone).ok());
  rp::Train train = Exact(2, 16);
  train.world_size = 2;
  train.rendezvous.port = ReservePort();
  rp::Train peer = train;
  peer.rank = 1;
  RecordingSink peer_sink;
  std::thread other([&] {
    TaskControl control(peer, SystemClock());
    const absl::Status status = Run(peer, control, peer_sink, [](const StepInput& input) {
      return input.rows > 8 ? OutOfMemoryError("injected") : absl::OkStatus();
    });
    EXPECT_TRUE(status.ok()) << status.ToString();
  });
  const absl::Status status = Run(train, gang);
  other.join();
  ASSERT_TRUE(status.ok()) << status.ToString();
  ASSERT_EQ(peer_sink.All<rp::Decision>().size(), 1u);
  EXPECT_EQ(peer_sink.All<rp::Decision>()[0].to, "8 rows x 2 passes");
  ExpectNear(Tensors(alone), Tensors(gang), 2e-5f);
}

// Without accumulation, by autograd: Gloo exchanges gradients during later backward passes.
TEST_P(TransportTest, ARankWhoseFirstStepDoesNotFitTakesItAgain) {
  const auto spec = [](const std::string& more) {
    return Spec(R"("patience":0,"paths":{"handwritten_backward":false})" + more, /*dropout=*/0);
  };
  RecordingSink alone;
  rp::Train one = Exact(1, 32);
  one.spec_json = spec("");
  ASSERT_TRUE(Run(one, alone).ok());
  int64_t attempt = 2;
  for (const size_t bytes : {100, 2000, 4000}) {  // before, in and after the forward pass
    SCOPED_TRACE(bytes);
    rp::Train train = Exact(attempt++, 16);
    train.spec_json = spec(absl::StrCat(",\"collective\":\"", GetParam(), "\""));
    train.world_size = 2;
    train.rendezvous.port = ReservePort();
    rp::Train peer = train;
    peer.rank = 1;
    RecordingSink gang, peer_sink;
    std::thread other([&] {
      TaskControl control(peer, SystemClock());
      std::unique_ptr<LimitedMemory> memory;
      const absl::Status status = Run(peer, control, peer_sink, [&](const StepInput& input) {
        memory.reset();
        if (input.rows > 8) memory = std::make_unique<LimitedMemory>(bytes);
        return absl::OkStatus();
      });
      EXPECT_TRUE(status.ok()) << status.ToString();
    });
    const absl::Status status = Run(train, gang);
    other.join();
    ASSERT_TRUE(status.ok()) << status.ToString();
    ASSERT_EQ(peer_sink.All<rp::Decision>().size(), 1u);
    EXPECT_EQ(peer_sink.All<rp::Decision>()[0].to, "8 rows x 2 passes");
    ExpectNear(Tensors(alone), Tensors(gang), 2e-5f);
  }
}

TEST_F(GangTest, ProbeAndValidationThatDoNotFitTakeFewerRowsAtATime) {
  RecordingSink sink;
  rp::Train train = Exact(1, 16);
  train.spec_json =
      Spec(R"("patience":0,"paths":{"handwritten_backward":false,"handwritten_forward":false})",
           /*dropout=*/0);
  TaskControl control(train, SystemClock());
  std::unique_ptr<LimitedMemory> memory;  // 199 validation rows need more than that
  const absl::Status status = Run(train, control, sink, [&](const StepInput&) {
    if (memory == nullptr) memory = std::make_unique<LimitedMemory>(16'000);
    return absl::OkStatus();
  });
  memory.reset();
  ASSERT_TRUE(status.ok()) << status.ToString();
  ASSERT_FALSE(sink.All<rp::Decision>().empty());
  EXPECT_EQ(sink.All<rp::Decision>()[0].rule, DecisionRule::kMemory);
  EXPECT_TRUE(absl::StrContains(sink.All<rp::Decision>()[0].to, "rows at a time"));
  EXPECT_EQ(sink.All<rp::FoldSaved>().size(), 1u);
}

TEST_P(TransportTest, AFlagOfOneRankIsSeenByAll) {
  GroupOptions options;
  options.port = ReservePort();
  options.world_size = 3;
  options.transport =
      std::string(GetParam()) == "shm" ? Transport::kSharedMemory : Transport::kGloo;
  const auto run = [&options](int rank) {
    GroupOptions own = options;
    own.rank = rank;
    const auto group = Group::Join(own);
    ASSERT_TRUE(group.ok()) << group.status().ToString();
    Gang gang(group->get());
    bool flag = rank == 2;
    ASSERT_TRUE(gang.ShareFlag(flag).ok());
    EXPECT_TRUE(flag);
    flag = false;
    ASSERT_TRUE(gang.ShareFlag(flag).ok());
    EXPECT_FALSE(flag);
  };
  std::thread first(run, 1), second(run, 2);
  run(0);
  first.join();
  second.join();
}

TEST_F(GangTest, AGangThatDoesNotComeTogetherFailsInTime) {
  rp::Train train = Exact(1, 16);
  train.world_size = 2;
  train.rendezvous.port = ReservePort();
  train.rendezvous.timeout_ms = 300;
  RecordingSink sink;
  const absl::Status status = Run(train, sink);
  EXPECT_EQ(FaultOf(status), Fault::kCollective) << status.ToString();
}

}  // namespace
}  // namespace traind
