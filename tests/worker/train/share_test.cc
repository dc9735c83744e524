// Epochs that see a share of the training rows.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/worker/train/trainer_fixture.h"

namespace traind {
namespace {

constexpr int64_t kSteps = 25;  // of an epoch: 398 rows in batches of 16

class ShareTest : public GangTest {
 protected:
  rp::Train Share(int64_t attempt, double rows) {
    rp::Train train = Exact(attempt, 16);
    train.spec_json = Spec(R"("patience":0,"schedule":{"kind":"constant"})", /*dropout=*/0.2);
    train.row_share = rows;
    return train;
  }
  static std::vector<int64_t> StepsOfEpochs(const RecordingSink& sink) {
    std::vector<int64_t> steps;
    int64_t before = sink.All<rp::Started>()[0].first_step;
    for (const rp::Epoch& epoch : sink.All<rp::Epoch>()) {
      steps.push_back(epoch.step - before);
      before = epoch.step;
    }
    return steps;
  }
};

TEST_F(ShareTest, AnEpochOfAShareHasSoManySteps) {
  RecordingSink sink;
  ASSERT_TRUE(Run(Share(1, 0.3), sink).ok());
  EXPECT_EQ(sink.All<rp::Started>()[0].steps_per_epoch, kSteps) << "of all rows";
  EXPECT_EQ(StepsOfEpochs(sink), std::vector<int64_t>({8, 8, 8}));
  for (const rp::Epoch& epoch : sink.All<rp::Epoch>()) EXPECT_DOUBLE_EQ(epoch.row_share, 0.32);
  const auto saved = sink.All<rp::FoldSaved>().back();
  EXPECT_TRUE(saved.complete);
  EXPECT_EQ(saved.epochs_done, 3);
}

TEST_F(ShareTest, EachEpochHasAStepHoweverSmallItsShare) {
  RecordingSink sink;
  ASSERT_TRUE(Run(Share(1, 0.001), sink).ok());
  EXPECT_EQ(StepsOfEpochs(sink), std::vector<int64_t>({1, 1, 1}));
}

TEST_F(ShareTest, EpochsOfAShareDoNotSeeTheSameRows) {
  rp::Train fresh = Share(1, 0.3), again = Share(2, 0.3);
  fresh.epochs = 2;
  again.epochs = 1;
  RecordingSink two, one;
  ASSERT_TRUE(Run(fresh, two).ok());
  ASSERT_TRUE(Run(again, one).ok());
  const auto epochs = two.All<rp::Epoch>();
  EXPECT_EQ(epochs[0].train_loss, one.All<rp::Epoch>()[0].train_loss);
  EXPECT_NE(epochs[0].train_loss, epochs[1].train_loss);
}

TEST_F(ShareTest, AResumedRunOfAShareEndsAsIfItHadNeverStopped) {
  RecordingSink whole, first, rest;
  ASSERT_TRUE(Run(Share(1, 0.9), whole).ok());
  ASSERT_TRUE(RunALittle(Share(2, 0.9), first).ok());
  rp::Train resumed = Share(3, 0.9);
  resumed.resume = first.All<rp::CheckpointSaved>().back().manifest;
  ASSERT_TRUE(Run(resumed, rest).ok());
  ASSERT_GT(rest.All<rp::Started>()[0].first_step, 0);
  EXPECT_EQ(Tensors(whole), Tensors(rest));
  EXPECT_EQ(Answers(whole.All<rp::FoldSaved>().back()), Answers(rest.All<rp::FoldSaved>().back()));
}

// The cosine's end lies where the last epoch of the Plan ends, resumed or not.
TEST_F(ShareTest, TheScheduleFollowsTheShare) {
  const auto with_cosine = [this](int64_t attempt, double rows) {
    rp::Train train = Share(attempt, rows);
    train.spec_json = Spec(R"("patience":0)", /*dropout=*/0.2);
    return train;
  };
  RecordingSink whole, first, rest, constant;
  ASSERT_TRUE(Run(with_cosine(1, 0.9), whole).ok());
  ASSERT_TRUE(RunALittle(with_cosine(2, 0.9), first).ok());
  rp::Train resumed = with_cosine(3, 0.9);
  resumed.resume = first.All<rp::CheckpointSaved>().back().manifest;
  ASSERT_TRUE(Run(resumed, rest).ok());
  EXPECT_EQ(Tensors(whole), Tensors(rest));
  ASSERT_TRUE(Run(Share(4, 0.9), constant).ok());
  EXPECT_NE(Tensors(whole), Tensors(constant)) << "there is a cosine";
  // A Plan that ends where a share of one epoch does: the last steps have next to no rate.
  rp::Train last = with_cosine(5, 0.3), more = with_cosine(6, 0.3);
  last.epochs = 1;
  more.epochs = 2;
  RecordingSink one, two;
  ASSERT_TRUE(Run(last, one).ok());
  ASSERT_TRUE(Run(more, two).ok());
  EXPECT_EQ(one.All<rp::Epoch>()[0].val_loss, two.All<rp::Epoch>()[0].val_loss)
      << "the warm-up, a whole epoch's steps, does not depend on the plan";
}

TEST_F(ShareTest, ACheckpointOfAShareGoesOnWithAllRows) {
  RecordingSink whole, first, rest;
  ASSERT_TRUE(Run(Share(1, 1), whole).ok());
  ASSERT_TRUE(RunALittle(Share(2, 0.9), first).ok());
  rp::Train resumed = Share(3, 1);
  resumed.resume = first.All<rp::CheckpointSaved>().back().manifest;
  ASSERT_TRUE(Run(resumed, rest).ok());
  ASSERT_LT(rest.All<rp::Started>()[0].first_step, kSteps);
  EXPECT_EQ(Tensors(whole), Tensors(rest)) << "the epoch's order is the same";
}

TEST_F(ShareTest, FurtherEpochsOfAllRowsFollowThoseOfAShare) {
  RecordingSink first, rest;
  ASSERT_TRUE(Run(Share(1, 0.3), first).ok());
  rp::Train resumed = Share(2, 1);
  resumed.epochs = 5;
  resumed.resume = first.All<rp::CheckpointSaved>().back().manifest;
  ASSERT_TRUE(Run(resumed, rest).ok());
  EXPECT_EQ(rest.All<rp::Started>()[0].start_epoch, 3);
  EXPECT_EQ(StepsOfEpochs(rest), std::vector<int64_t>({kSteps, kSteps}));
  EXPECT_EQ(rest.All<rp::FoldSaved>().back().epochs_done, 5);
}

TEST_F(ShareTest, ANewShareEndsTheRunningEpochEarlierOrLater) {
  for (const double share : {0.6, 1.0}) {
    const rp::Train train = Share(1, share == 1 ? 0.6 : 1);
    TaskControl control(train, SystemClock());
    RecordingSink sink;
    sink.Listen([&](const rp::FromProcess& message) {
      if (!std::holds_alternative<rp::Probe>(message)) return;
      rp::Replan replan;
      replan.row_share = share;
      control.Apply(replan);
    });
    ASSERT_TRUE(Run(train, control, sink).ok());
    const int64_t steps = share == 1 ? kSteps : 15;
    EXPECT_EQ(StepsOfEpochs(sink), std::vector<int64_t>({steps, steps, steps}));
    EXPECT_TRUE(sink.All<rp::FoldSaved>().back().complete);
  }
}

TEST_F(ShareTest, TwoRanksTrainAShareAsOneWithTwiceTheBatch) {
  rp::Train one = Exact(1, 32), two = Exact(2, 16);
  one.row_share = two.row_share = 0.4;
  RecordingSink alone, gang;
  ASSERT_TRUE(Run(one, alone).ok());
  RunGang(two, 2, gang);
  EXPECT_EQ(StepsOfEpochs(gang), std::vector<int64_t>({6, 6, 6}));
  ExpectNear(Tensors(alone), Tensors(gang), 2e-5f);
}

TEST_F(ShareTest, AShareThatRankZeroAloneHearsOfIsThatOfAll) {
  rp::Train train = Exact(1, 16);
  train.epochs = 100'000;
  RecordingSink sink;
  RunGang(train, 2, sink, [&sink](TaskControl& control) {
    sink.Listen([&control, last = int64_t{0}](const rp::FromProcess& message) mutable {
      const auto* epoch = std::get_if<rp::Epoch>(&message);
      if (epoch == nullptr) return;
      rp::Replan replan;
      replan.row_share = 0.5;
      if (epoch->epoch == 1) control.Apply(replan);
      if (epoch->step - last == 7) control.Apply(rp::Stop{1, true});
      last = epoch->step;
    });
  });
  EXPECT_EQ(sink.All<rp::FoldSaved>().back().stopped_by, StopCause::kUser);
  EXPECT_EQ(StepsOfEpochs(sink).back(), 7);
}

}  // namespace
}  // namespace traind
