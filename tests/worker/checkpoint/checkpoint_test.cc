#include "worker/checkpoint/checkpoint.h"

#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "common/base/durable_file.h"
#include "worker/checkpoint/checkpoint_manifest.h"
#include "worker/checkpoint/safetensors.h"

namespace traind {
namespace {

const ParameterLayout& Layout() {
  static const ParameterLayout layout{{"layers.0.weight", {2, 3}, 6}, {"layers.0.bias", {2}, 2}};
  return layout;
}

Checkpoint Sample(int64_t step) {
  Checkpoint c;
  c.job = "job";
  c.attempt = 7;
  c.fold = 2;
  c.seed = 18446744073709551615u;
  c.table_sha256 = "abc";
  c.step = step;
  c.epoch = 3;
  c.position = 64;
  c.epochs_seen = 1.75;
  c.epoch_fraction = 3.1;
  c.epoch_loss_sum = 0.1 + 0.2;
  c.epoch_loss_rows = 64;
  c.world_size = 2;
  c.batch = 16;
  c.step_rows = 128;
  c.recompute = true;
  c.precision = "fp16";
  c.planned_epochs = 20;
  c.warmup_steps = 10;
  c.learning_rate = 1e-3;
  c.optimizer_steps = step - 1;
  c.body_steps = step - 5;
  c.layer_steps = {0, 2, step - 5};
  c.best_smearing = {{-0.25, 0.1, 1e-17}, {}, {3}};
  c.frozen_passes = 0.75;
  c.averaged = 3;
  c.rate_found = true;
  c.loss_scale = 65536;
  c.growth_tracker = 12;
  c.has_best = true;
  c.best_metric = -std::numeric_limits<double>::infinity();
  c.best_loss = 1.0 / 3;
  c.best_epoch = 2.5;
  c.epochs_without_better = 1;
  c.patience_metric = std::numeric_limits<double>::quiet_NaN();
  auto held = std::make_shared<std::map<std::string, std::vector<float>>>();
  for (int i = 0; i < 8; ++i) {
    (*held)["weights"].push_back(0.1f * static_cast<float>(i + step));
    (*held)["best_weights"].push_back(-0.1f * static_cast<float>(i));
    (*held)["exp_avg"].push_back(1e-20f * static_cast<float>(i));
    (*held)["exp_avg_sq"].push_back(static_cast<float>(i));
    (*held)["ema"].push_back(0.5f);
  }
  for (const auto& [slot, values] : *held) c.slots[slot] = values;
  c.owner = held;
  return c;
}

class CheckpointTest : public testing::Test {
 protected:
  void SetUp() override {
    state_ = absl::StrCat(testing::TempDir(), "/checkpoint-XXXXXX");
    ASSERT_NE(mkdtemp(state_.data()), nullptr);
    ASSERT_TRUE(MakeDirs(absl::StrCat(state_, "/a")).ok());
  }

  std::string Save(int64_t step) {
    const auto saved = WriteCheckpoint(state_, "a", Layout(), Sample(step));
    EXPECT_TRUE(saved.ok()) << saved.status().ToString();
    return saved->manifest;
  }

  std::string Text(const std::string& name) { return *ReadFile(absl::StrCat(state_, "/a/", name)); }
  void Overwrite(const std::string& name, const std::string& bytes) {
    ASSERT_TRUE(WriteFileDurably(absl::StrCat(state_, "/a/", name), bytes).ok());
  }
  absl::StatusOr<FoundCheckpoint> Find(const std::string& manifest) {
    warnings_.clear();
    return FindCheckpoint(state_, manifest, Layout(), Sample(0), warnings_);
  }

  std::string state_;
  std::vector<std::string> warnings_;
};

TEST_F(CheckpointTest, EveryFieldComesBackAsItWas) {
  const std::string manifest = Save(100);
  EXPECT_EQ(manifest, "a/checkpoint-100.json");
  const auto read = ReadCheckpoint(state_, manifest, Layout(), Sample(0));
  ASSERT_TRUE(read.ok()) << read.status().ToString();
  const Checkpoint expected = Sample(100);
  EXPECT_EQ(read->job, expected.job);
  EXPECT_EQ(read->attempt, expected.attempt);
  EXPECT_EQ(read->seed, expected.seed);
  EXPECT_EQ(read->step, expected.step);
  EXPECT_EQ(read->epoch, expected.epoch);
  EXPECT_EQ(read->position, expected.position);
  EXPECT_EQ(read->epoch_loss_sum, expected.epoch_loss_sum);
  EXPECT_EQ(read->world_size, expected.world_size);
  EXPECT_EQ(read->batch, expected.batch);
  EXPECT_EQ(read->precision, expected.precision);
  EXPECT_EQ(read->planned_epochs, expected.planned_epochs);
  EXPECT_EQ(read->warmup_steps, expected.warmup_steps);
  EXPECT_EQ(read->learning_rate, expected.learning_rate);
  EXPECT_EQ(read->optimizer_steps, expected.optimizer_steps);
  EXPECT_EQ(read->body_steps, expected.body_steps);
  EXPECT_EQ(read->layer_steps, expected.layer_steps);
  EXPECT_EQ(read->best_smearing, expected.best_smearing);
  EXPECT_EQ(read->frozen_passes, 0.75);
  EXPECT_EQ(read->averaged, 3);
  EXPECT_TRUE(read->rate_found);
  EXPECT_EQ(read->loss_scale, expected.loss_scale);
  EXPECT_EQ(read->growth_tracker, expected.growth_tracker);
  EXPECT_EQ(read->has_best, expected.has_best);
  EXPECT_EQ(read->best_metric, expected.best_metric);
  EXPECT_EQ(read->best_loss, expected.best_loss);
  EXPECT_EQ(read->best_epoch, expected.best_epoch);
  EXPECT_EQ(read->epochs_without_better, expected.epochs_without_better);
  EXPECT_TRUE(std::isnan(read->patience_metric));
  EXPECT_EQ(read->step_rows, 128);
  EXPECT_EQ(read->epochs_seen, 1.75);
  EXPECT_TRUE(read->recompute);
  EXPECT_EQ(read->slots, expected.slots);
}

TEST_F(CheckpointTest, WithoutBestWeightsTheLastOnesPredict) {
  Checkpoint c = Sample(100);
  c.slots.erase("best_weights");
  ASSERT_TRUE(WriteCheckpoint(state_, "a", Layout(), c).ok());
  const auto read = ReadCheckpoint(state_, "a/checkpoint-100.json", Layout(), Sample(0));
  ASSERT_TRUE(read.ok()) << read.status().ToString();
  EXPECT_EQ(read->slots.at("best_weights"), c.slots.at("weights"));
}

// A checkpoint of format 1, written by its last release.
TEST_F(CheckpointTest, TheFirstFormatIsStillRead) {
  const std::string golden = "tests/worker/checkpoint/golden/";
  for (const char* name : {"checkpoint-100.json", "checkpoint-100.safetensors"}) {
    Overwrite(name, *ReadFile(golden + name));
  }
  Checkpoint old = Sample(0);
  old.slots.erase("ema");
  const auto read = ReadCheckpoint(state_, "a/checkpoint-100.json", Layout(), old);
  ASSERT_TRUE(read.ok()) << read.status().ToString();
  const Checkpoint expected = Sample(100);
  EXPECT_EQ(read->optimizer, "adamw");
  EXPECT_EQ(read->step_rows, 32);
  EXPECT_EQ(read->epochs_seen, 3) << "its epochs were whole";
  EXPECT_EQ(read->body_steps, expected.optimizer_steps) << "no body was ever frozen";
  EXPECT_TRUE(read->layer_steps.empty());
  EXPECT_TRUE(read->best_smearing.empty());
  EXPECT_EQ(read->frozen_passes, 0);
  EXPECT_EQ(read->averaged, 0);
  EXPECT_FALSE(read->rate_found);
  EXPECT_EQ(read->best_loss, expected.best_loss);
  ASSERT_EQ(read->slots.size(), 4u);
  for (const auto& [slot, values] : read->slots) EXPECT_EQ(values, expected.slots.at(slot)) << slot;
}

// Another program may write the tensors in another order.
TEST_F(CheckpointTest, TensorsInAnotherOrderAreFoundByTheirNames) {
  const std::string manifest = Save(100);
  const std::string bytes = Text("checkpoint-100.safetensors");
  const auto file = ParseSafetensors(bytes);
  ASSERT_TRUE(file.ok());
  std::vector<NamedTensorView> tensors;
  for (const auto& [name, tensor] : file->tensors) tensors.push_back({name, tensor});
  std::reverse(tensors.begin(), tensors.end());
  const std::string other = EncodeSafetensors(tensors, {});
  Overwrite("checkpoint-100.safetensors", other);
  Overwrite("checkpoint-100.json",
            EncodeManifest(Sample(100), {Sha256Hex(other), static_cast<int64_t>(other.size())}));
  const auto read = ReadCheckpoint(state_, manifest, Layout(), Sample(0));
  ASSERT_TRUE(read.ok()) << read.status().ToString();
  EXPECT_EQ(read->slots, Sample(100).slots);
}

TEST_F(CheckpointTest, AnyFlippedByteOfEitherFileIsNoticed) {
  const std::string manifest = Save(100);
  for (const char* name : {"checkpoint-100.json", "checkpoint-100.safetensors"}) {
    const std::string sound = Text(name);
    for (size_t i = 0; i < sound.size(); i += 7) {
      std::string damaged = sound;
      damaged[i] = static_cast<char>(damaged[i] ^ 1);
      Overwrite(name, damaged);
      EXPECT_FALSE(ReadCheckpoint(state_, manifest, Layout(), Sample(0)).ok()) << name << " " << i;
    }
    Overwrite(name, sound);
  }
  EXPECT_TRUE(ReadCheckpoint(state_, manifest, Layout(), Sample(0)).ok());
}

// To write such a text needs a stack frame for each bracket.
TEST(CheckpointManifestTest, AHundredThousandBracketsAreRefused) {
  const std::string brackets = std::string(100'000, '[') + std::string(100'000, ']');
  const auto manifest =
      DecodeManifest("{\"format\": 2, \"x\": " + brackets + "}", "checkpoint-1.json");
  EXPECT_TRUE(absl::IsDataLoss(manifest.status())) << manifest.status();
}

TEST_F(CheckpointTest, WhereTheNewestIsDamagedTheOneBeforeIsUsed) {
  Save(100);
  Save(200);
  const std::string newest = Save(300);
  Overwrite("checkpoint-300.safetensors", Text("checkpoint-300.safetensors").substr(0, 50));
  auto found = Find(newest);
  ASSERT_TRUE(found.ok()) << found.status().ToString();
  EXPECT_EQ(found->checkpoint.step, 200);
  EXPECT_EQ(found->manifest, "a/checkpoint-200.json");
  ASSERT_EQ(warnings_.size(), 1u);
  EXPECT_TRUE(absl::StrContains(warnings_[0], "checkpoint-300.safetensors is damaged"));

  Overwrite("checkpoint-200.json", "{");
  found = Find(newest);
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(found->checkpoint.step, 100);
  EXPECT_EQ(warnings_.size(), 2u);
}

// Files as a crash, a failing disk or a person may leave them. nullopt: the file is gone.
std::optional<std::string> Damaged(const std::string& sound, const std::string& of_another,
                                   std::mt19937_64& random) {
  std::string bytes = sound;
  const size_t at = random() % bytes.size();
  switch (random() % 7) {
    case 0:
      return bytes.substr(0, at);  // torn
    case 1:
      bytes[at] = static_cast<char>(bytes[at] ^ (1 << random() % 8));
      return bytes;
    case 2:
      return std::nullopt;
    case 3:
      return of_another;
    case 4:  // a sector that was never written
      return bytes.replace(at / 512 * 512, 512, std::string(512, '\0')).substr(0, sound.size());
    case 5:
      return bytes + bytes.substr(at);
    default:
      return "";
  }
}

TEST_F(CheckpointTest, InTwoHundredDamagedFoldersTheNewestSoundOneIsFound) {
  const std::vector<int64_t> steps = {300, 200, 100};
  std::map<std::string, std::string> sound;
  for (const int64_t step : steps) {
    Save(step);
    for (const char* suffix : {".json", ".safetensors"}) {
      const std::string name = absl::StrCat("checkpoint-", step, suffix);
      sound[name] = Text(name);
    }
  }
  std::map<int64_t, int> found_at;
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    std::mt19937_64 random(seed);
    int64_t expected = 0;  // none is sound
    for (const int64_t step : steps) {
      bool whole = true;
      for (const char* suffix : {".json", ".safetensors"}) {
        const std::string name = absl::StrCat("checkpoint-", step, suffix);
        const std::string path = absl::StrCat(state_, "/a/", name);
        const std::string other = absl::StrCat("checkpoint-", step == 100 ? 200 : 100, suffix);
        std::optional<std::string> bytes = sound.at(name);
        if (random() % 3 == 0) bytes = Damaged(*bytes, sound.at(other), random);
        whole = whole && bytes == sound.at(name);
        unlink(path.c_str());
        if (bytes.has_value()) std::ofstream(path, std::ios::binary) << *bytes;
      }
      if (whole) expected = std::max(expected, step);
    }
    const auto found = Find("a/checkpoint-200.json");
    ++found_at[expected];
    if (expected == 0) {
      EXPECT_TRUE(absl::IsNotFound(found.status())) << seed << ": " << found.status();
      continue;
    }
    ASSERT_TRUE(found.ok()) << seed << ": " << found.status();
    EXPECT_EQ(found->checkpoint.step, expected) << seed;
    EXPECT_EQ(found->checkpoint.slots.at("weights"), Sample(expected).slots.at("weights")) << seed;
  }
  EXPECT_EQ(found_at.size(), 4u) << "each of the three, and none, is the answer at times";
}

TEST_F(CheckpointTest, AMissingOneFallsBackToo) {
  Save(100);
  const auto found = Find("a/checkpoint-300.json");
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(found->checkpoint.step, 100);
}

TEST_F(CheckpointTest, TheNewestIsUsedAlsoWhereAnOlderOneIsNamed) {
  const std::string named = Save(100);
  for (const int64_t step : {200, 300}) Save(step);
  auto found = Find(named);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->checkpoint.step, 300);
  // The one that traind heard of last is gone after two more.
  ASSERT_TRUE(PruneCheckpoints(state_, "a", 2).ok());
  Overwrite("checkpoint-300.json", "{}");
  found = Find(named);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->checkpoint.step, 200);
}

TEST_F(CheckpointTest, WithoutASoundOneThereIsNone) {
  EXPECT_TRUE(absl::IsNotFound(Find("a/checkpoint-1.json").status()));
  EXPECT_TRUE(absl::IsNotFound(Find("nowhere/checkpoint-1.json").status()));
}

TEST_F(CheckpointTest, OthersCheckpointsAreRefused) {
  const std::string manifest = Save(100);
  Checkpoint other = Sample(0);
  other.table_sha256 = "xyz";
  EXPECT_TRUE(
      absl::IsFailedPrecondition(ReadCheckpoint(state_, manifest, Layout(), other).status()));
  other = Sample(0);
  other.fold = 3;
  EXPECT_TRUE(
      absl::IsFailedPrecondition(ReadCheckpoint(state_, manifest, Layout(), other).status()));
  const auto refusal = [&](const Checkpoint& expected) {
    const auto read = ReadCheckpoint(state_, manifest, Layout(), expected);
    EXPECT_TRUE(absl::IsFailedPrecondition(read.status()));
    return std::string(read.status().message());
  };
  other = Sample(0);
  other.optimizer = "sgd";
  EXPECT_TRUE(absl::StrContains(refusal(other), "to another optimizer: adamw, not sgd"));
  other = Sample(0);
  other.slots["momentum_buffer"];
  EXPECT_TRUE(absl::StrContains(refusal(other), "lacks momentum_buffer"));
  other = Sample(0);
  other.model = "lstm";
  EXPECT_TRUE(absl::StrContains(refusal(other), "to another model: mlp, not lstm"));
  ParameterLayout layout = Layout();
  layout[1].shape = {1, 2};
  EXPECT_TRUE(
      absl::IsFailedPrecondition(ReadCheckpoint(state_, manifest, layout, Sample(0)).status()));
  layout = {Layout()[0]};
  EXPECT_TRUE(
      absl::IsFailedPrecondition(ReadCheckpoint(state_, manifest, layout, Sample(0)).status()));
}

TEST_F(CheckpointTest, OneOfAnotherDtypeIsRefused) {
  const std::string manifest = Save(100);
  const std::string bytes = Text("checkpoint-100.safetensors");
  const auto file = ParseSafetensors(bytes);
  ASSERT_TRUE(file.ok());
  std::vector<NamedTensorView> tensors;
  for (const auto& [name, tensor] : file->tensors) {
    tensors.push_back({name, tensor});
    tensors.back().tensor.dtype = DType::kBF16;
    tensors.back().tensor.data = tensor.data.substr(0, tensor.data.size() / 2);
  }
  const std::string half = EncodeSafetensors(tensors, {});
  Overwrite("checkpoint-100.safetensors", half);
  Overwrite("checkpoint-100.json",
            EncodeManifest(Sample(100), {Sha256Hex(half), static_cast<int64_t>(half.size())}));
  const auto read = ReadCheckpoint(state_, manifest, Layout(), Sample(0));
  EXPECT_TRUE(absl::IsFailedPrecondition(read.status())) << read.status().ToString();
  EXPECT_TRUE(absl::StrContains(read.status().message(), "is not float32"));
}

TEST_F(CheckpointTest, PathsOutsideTheStateFolderAreRefused) {
  EXPECT_TRUE(absl::IsInvalidArgument(Find("/etc/checkpoint-1.json").status()));
  EXPECT_TRUE(absl::IsInvalidArgument(Find("a/../../checkpoint-1.json").status()));
}

TEST_F(CheckpointTest, PruningKeepsTheStepsItIsTold) {
  for (const int64_t step : {5, 10, 99, 100}) Save(step);
  ASSERT_TRUE(PruneCheckpoints(state_, "a", 1, {10}).ok());
  for (const int64_t step : {5, 10, 99, 100}) {
    const std::string path = absl::StrCat(state_, "/a/checkpoint-", step, ".json");
    EXPECT_EQ(access(path.c_str(), F_OK) == 0, step == 10 || step == 100) << path;
  }
}

TEST_F(CheckpointTest, PruningKeepsTheNewestByStep) {
  for (const int64_t step : {5, 10, 100, 99}) Save(step);
  ASSERT_TRUE(PruneCheckpoints(state_, "a", 2).ok());
  for (const int64_t step : {5, 10, 99, 100}) {
    for (const char* suffix : {".json", ".safetensors"}) {
      const std::string path = absl::StrCat(state_, "/a/checkpoint-", step, suffix);
      EXPECT_EQ(access(path.c_str(), F_OK) == 0, step >= 99) << path;
    }
  }
}

}  // namespace
}  // namespace traind
