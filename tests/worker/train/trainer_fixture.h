// Trains folds of a small table in this process, and looks at what comes out.
#pragma once

#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common/base/durable_file.h"
#include "common/base/job_layout.h"
#include "common/base/reserved_port.h"
#include "tests/worker/fixture/fold_fixture.h"
#include "tests/worker/fixture/recording_sink.h"
#include "worker/checkpoint/safetensors.h"
#include "worker/train/trainer.h"

namespace traind {

namespace rp = rank_protocol;

inline std::string Spec(
    const std::string& train = "", double dropout = 0.2,
    const std::string& task = R"("type":"classification","metric":"accuracy")") {
  return absl::StrCat(R"({"task":{)", task, R"(},"data":{"seed":"7"},"model":{"mlp":{"hidden":)",
                      R"([16,8],"dropout":)", dropout, R"(}},"train":{"epochs":3)",
                      train.empty() ? "" : ",", train, "}}");
}

class TrainerTest : public testing::Test {
 protected:
  void SetUp() override {
    state_ = NewStateDir();
    table_ = WriteState(state_, MakeRows(options_), MakeFolds(options_));
  }

  rp::Train Task(int64_t attempt) {
    rp::Train train;
    train.attempt = attempt;
    train.job = "job";
    train.state_dir = state_;
    train.spec_json = Spec();
    train.table = table_;
    train.fold = 1;
    train.epochs = 3;
    train.batch = 16;
    return train;
  }

  absl::Status Run(const rp::Train& train, RecordingSink& sink) {
    TaskControl control(train, SystemClock());
    return Run(train, control, sink);
  }
  absl::Status Run(const rp::Train& train, TaskControl& control, RecordingSink& sink,
                   Trainer::MicroBatchHook before_micro_batch = nullptr) {
    Trainer trainer(train, control, sink, SystemClock(), std::move(before_micro_batch));
    return TrainFold(trainer);
  }
  // Stops hard as soon as the probe is through: after a few steps, in the first epoch.
  absl::Status RunALittle(const rp::Train& train, RecordingSink& sink) {
    TaskControl control(train, SystemClock());
    sink.Listen([&](const rp::FromProcess& message) {
      if (std::holds_alternative<rp::Probe>(message)) {
        control.Apply(rp::Stop{train.attempt, /*predict=*/false});
      }
    });
    return Run(train, control, sink);
  }

  std::string File(const std::string& relative) {
    auto bytes = ReadFile(absl::StrCat(state_, "/", relative));
    EXPECT_TRUE(bytes.ok()) << bytes.status().ToString();
    return bytes.ok() ? *bytes : "";
  }
  std::string Answers(const rp::FoldSaved& saved) {
    return File(absl::StrCat(JobDir("job"), "/", saved.oof)) +
           File(absl::StrCat(JobDir("job"), "/", saved.test));
  }
  // All tensors of an Attempt's last checkpoint.
  std::map<std::string, std::vector<float>> Tensors(const RecordingSink& sink) {
    std::string path = sink.All<rp::CheckpointSaved>().back().manifest;
    path.replace(path.rfind(".json"), 5, ".safetensors");
    const std::string bytes = File(path);
    const auto file = ParseSafetensors(bytes);
    EXPECT_TRUE(file.ok()) << file.status().ToString();
    std::map<std::string, std::vector<float>> tensors;
    for (const auto& [name, tensor] : file->tensors) {
      tensors[name] = *FloatsOf(*file, name, static_cast<int64_t>(tensor.data.size()) / 4);
    }
    return tensors;
  }

  FixtureOptions options_;
  std::string state_, table_;
};

// ---- gangs: one thread per rank -------------------------------------------------

class GangTest : public TrainerTest {
 protected:
  // Rank 0's sink is `sink`. All must succeed.
  void RunGang(rp::Train train, int world_size, RecordingSink& sink,
               const std::function<void(TaskControl&)>& with_control = nullptr) {
    train.world_size = world_size;
    train.rendezvous.port = ReservePort();
    std::vector<std::thread> others;
    for (int rank = 1; rank < world_size; ++rank) {
      rp::Train peer = train;
      peer.rank = rank;
      others.emplace_back([this, peer] {
        RecordingSink quiet;
        const absl::Status status = Run(peer, quiet);
        EXPECT_TRUE(status.ok()) << "rank " << peer.rank << ": " << status.ToString();
        EXPECT_TRUE(quiet.All<rp::FoldSaved>().empty());
      });
    }
    TaskControl control(train, SystemClock());
    if (with_control) with_control(control);
    const absl::Status status = Run(train, control, sink);
    EXPECT_TRUE(status.ok()) << "rank 0: " << status.ToString();
    for (std::thread& other : others) other.join();
  }

  void ExpectNear(const std::map<std::string, std::vector<float>>& a,
                  const std::map<std::string, std::vector<float>>& b, float tolerance) {
    for (const auto& [name, values] : a) {
      if (!absl::StartsWith(name, "last.")) continue;
      const std::vector<float>& others = b.at(name);
      ASSERT_EQ(values.size(), others.size());
      for (size_t i = 0; i < values.size(); ++i) {
        ASSERT_NEAR(values[i], others[i], tolerance) << name << " " << i;
      }
    }
  }

  void SetUp() override {
    options_.train_rows = 597;  // 398 training rows: uneven last batches
    TrainerTest::SetUp();
  }
  rp::Train Exact(int64_t attempt, int batch) {
    rp::Train train = Task(attempt);
    train.spec_json = Spec("\"patience\":0", /*dropout=*/0);
    train.batch = batch;
    return train;
  }
};

}  // namespace traind
