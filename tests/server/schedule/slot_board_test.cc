#include "server/schedule/slot_board.h"

#include <absl/strings/str_cat.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <string>
#include <utility>

namespace traind {
namespace {

WorkerSlots Machine(const std::string& name, int slots, const std::string& device = "cpu") {
  WorkerSlots worker;
  worker.worker = name;
  for (int i = 0; i < slots; ++i) worker.slots.push_back({i, device, true});
  return worker;
}

int Free(const WorkerSlots& worker, const std::string& device = "") {
  return static_cast<int>(
      std::count_if(worker.slots.begin(), worker.slots.end(), [&](const WorkerSlots::Slot& slot) {
        return slot.free && (device.empty() || slot.device == device);
      }));
}

std::string Fullest(const SlotBoard& board, const std::string& device, int least) {
  const WorkerSlots* found = board.FindFullest(
      {least, device}, [&](const WorkerSlots& worker) { return Free(worker, device) >= least; });
  return found == nullptr ? "" : found->worker;
}

TEST(SlotBoardTest, AReservedSlotIsReservedUntilAllAreReleased) {
  SlotBoard board;
  board.Put(Machine("w", 2));
  board.Reserve("w", 1, absl::UnixEpoch());
  EXPECT_EQ(board.Find("w")->slots[1].reserved_from, absl::UnixEpoch());
  EXPECT_EQ(board.free_slots(), 2);
  board.ReleaseReserved();
  EXPECT_EQ(board.Find("w")->slots[1].reserved_from, absl::InfiniteFuture());
}

TEST(SlotBoardTest, AWorkerThatWentWithItsReservationsComesBackWithNone) {
  SlotBoard board;
  board.Put(Machine("w", 4));
  board.Reserve("w", 3, absl::UnixEpoch());
  board.Put(Machine("w", 1));
  board.ReleaseReserved();
  board.Reserve("w", 0, absl::UnixEpoch());
  board.Remove("w");
  board.ReleaseReserved();
  EXPECT_EQ(board.free_slots(), 0);
  EXPECT_EQ(board.Find("w"), nullptr);
  EXPECT_EQ(board.capacity().slots(), 0);
}

TEST(SlotBoardTest, ItIsToldWhenHeldSlotsWillBeFree) {
  SlotBoard board;
  board.Put(Machine("w", 2));
  board.Take({"w", {1}});
  board.ExpectFree("w", {1}, absl::UnixEpoch());
  board.ExpectFree("unknown", {1}, absl::UnixEpoch());
  EXPECT_EQ(board.Find("w")->slots[1].free_at, absl::UnixEpoch());
  EXPECT_EQ(board.Find("w")->slots[0].free_at, absl::InfiniteFuture());
}

WorkerSlots Gpus(const std::string& name, int slots, const std::string& gpu, int64_t gib,
                 std::set<std::string> labels = {}) {
  WorkerSlots worker = Machine(name, slots, "cuda");
  for (WorkerSlots::Slot& slot : worker.slots) {
    slot.gpu = gpu;
    slot.memory_bytes = gib << 30;
  }
  worker.labels = std::move(labels);
  return worker;
}

TEST(SlotBoardTest, LabelsAndGpusChooseAmongWorkers) {
  SlotBoard board;
  board.Put(Gpus("a", 2, "nvidia h100 80gb hbm3", 79, {"rack=a", "zone=x"}));
  board.Put(Gpus("b", 1, "nvidia a100-sxm4-40gb", 39, {"rack=b", "zone=x"}));
  board.Put(Machine("c", 4));
  const auto find = [&board](const Constraints& asked, int slots = 1) -> std::string {
    const WorkerSlots* found =
        board.FindFullest({slots, "", asked}, [](const WorkerSlots&) { return true; });
    return found == nullptr ? "" : found->worker;
  };
  EXPECT_EQ(find({{"rack=a"}}), "a");
  EXPECT_EQ(find({{"zone=x"}}), "b") << "the fullest of both";
  EXPECT_EQ(find({{"zone=x", "rack=a"}}), "a");
  EXPECT_EQ(find({{"zone=y"}}), "");
  EXPECT_EQ(find({{"rack=a", "rack=b"}}), "");
  EXPECT_EQ(find({{}, "h100"}), "a");
  EXPECT_EQ(find({{}, "a100"}), "b");
  EXPECT_EQ(find({{}, "a10"}), "") << "an A100 is no A10";
  EXPECT_EQ(find({{}, "", int64_t{40} << 30}), "b") << "a card of 40 GB tells less than 40 GiB";
  EXPECT_EQ(find({{}, "", int64_t{48} << 30}), "a");
  EXPECT_EQ(find({{"rack=b"}, "h100"}), "");
  EXPECT_EQ(find({{"rack=a"}, "h100"}, 3), "");
  board.Put(Gpus("a", 2, "nvidia h100 80gb hbm3", 79, {"rack=c"}));
  EXPECT_EQ(find({{"rack=a"}}), "");
  EXPECT_EQ(find({{"rack=c"}}), "a");
  board.Remove("a");
  EXPECT_EQ(find({{"rack=c"}}), "");
}

TEST(SlotBoardTest, ItSaysWhatNoWorkerHas) {
  SlotBoard board;
  board.Put(Gpus("a", 2, "nvidia h100 80gb hbm3", 79, {"rack=a", "zone=x"}));
  board.Put(Gpus("b", 1, "nvidia l4", 22, {"rack=b"}));
  const auto missing = [&board](const Constraints& asked, const std::string& device = "") {
    return board.capacity().WhatIsMissing({1, device, asked});
  };
  EXPECT_EQ(missing({}), "");
  EXPECT_EQ(missing({{"rack=a"}, "h100"}), "");
  EXPECT_EQ(missing({{"rack=c"}}), "no Worker has label rack=c");
  EXPECT_EQ(missing({{"rack=b", "zone=x"}}), "no Worker has labels rack=b and zone=x");
  EXPECT_EQ(missing({{}, "b200"}, "cuda"),
            "no GPU is named b200; there is nvidia h100 80gb hbm3 of 80896 MiB, nvidia l4 of 22528 "
            "MiB");
  EXPECT_EQ(missing({{"rack=b"}, "", int64_t{40} << 30}, "cuda"),
            "no GPU of a Worker with rack=b is of 40960 MiB; there is nvidia l4 of 22528 MiB");
  EXPECT_EQ(missing({{"rack=b"}}, "cpu"), "") << "slots of that device are told elsewhere";
}

// A label of its own for each Worker makes no search and no count slower for the others.
TEST(SlotBoardTest, CapacityCountsByLabel) {
  SlotBoard board;
  for (int i = 0; i < 10; ++i) {
    board.Put(Gpus(absl::StrCat("w", i), 4, "nvidia l4", 22,
                   {absl::StrCat("host=", i), absl::StrCat("rack=", i % 2)}));
  }
  EXPECT_EQ(board.capacity().CountGangs({4, "cuda"}, false), 10);
  EXPECT_EQ(board.capacity().CountGangs({2, "cuda", {{"rack=1"}}}, false), 10);
  EXPECT_EQ(board.capacity().CountGangs({2, "cuda", {{"rack=1", "host=3"}}}, false), 2);
  EXPECT_EQ(board.capacity().CountGangs({2, "cuda", {{"rack=1", "host=2"}}}, false), 0);
  EXPECT_EQ(board.capacity().LargestGang({2, "", {{"host=3"}, "l4"}}, false), 4);
  EXPECT_EQ(board.capacity().LargestGang({2, "", {{"host=3"}, "l40"}}, false), 0);
  EXPECT_EQ(board.capacity().RarestOf({"rack=1", "host=3"}), "host=3");
}

// After any changes its answers are those of a walk over all Workers.
TEST(SlotBoardTest, ItAnswersLikeAWalkOverAllWorkers) {
  std::mt19937 random(17);
  const auto draw = [&random](int most) { return static_cast<int>(random() % (most + 1)); };
  SlotBoard board;
  for (int round = 0; round < 4000; ++round) {
    const std::string name = absl::StrCat("w", draw(12));
    const WorkerSlots* known = board.Find(name);
    if (draw(3) == 0) {
      board.Remove(name);
    } else if (known != nullptr && Free(*known) > 0 && draw(1) == 0) {
      GangPart part{name, {}};
      for (const auto& slot : known->slots) {
        if (slot.free && draw(1) == 0) part.slots.push_back(slot.index);
      }
      board.Take(part);
    } else {
      WorkerSlots worker = Machine(name, draw(4), draw(1) == 0 ? "cpu" : "cuda");
      worker.own_folder = draw(2) == 0;
      worker.network = draw(1) == 0 ? "outer" : "";
      for (int i = draw(2); i > 0; --i) worker.slots.push_back({10 + i, "cuda", draw(1) == 0});
      for (const char* label : {"rack=a", "rack=b", "zone=x"}) {
        if (draw(1) == 0) worker.labels.insert(label);
      }
      board.Put(worker);
    }

    int free = 0, gangs_of_two = 0, slots = 0;
    for (const auto& [id, worker] : board.workers()) {
      free += Free(worker);
      slots += static_cast<int>(worker.slots.size());
      int cpus = 0;
      for (const auto& slot : worker.slots) cpus += slot.device == "cpu";
      if (!worker.own_folder) gangs_of_two += cpus / 2;
    }
    ASSERT_EQ(board.free_slots(), free);
    ASSERT_EQ(board.capacity().slots(), slots);
    ASSERT_EQ(board.capacity().CountGangs({2, "cpu"}, false, true), gangs_of_two);

    const std::string device = draw(1) == 0 ? "" : "cuda";
    const int least = 1 + draw(2);
    const WorkerSlots* best = nullptr;
    for (const auto& [id, worker] : board.workers()) {
      if (Free(worker, device) < least) continue;
      if (best == nullptr || Free(worker) < Free(*best)) best = &worker;
    }
    ASSERT_EQ(Fullest(board, device, least), best == nullptr ? "" : best->worker);

    Constraints asked;
    for (const char* label : {"rack=a", "zone=x"}) {
      if (draw(1) == 0) asked.labels.insert(label);
    }
    best = nullptr;
    int labelled_gangs = 0;
    for (const auto& [id, worker] : board.workers()) {
      const bool has = std::all_of(asked.labels.begin(), asked.labels.end(),
                                   [&](const auto& l) { return worker.labels.count(l) > 0; });
      if (!has) continue;
      int cpus = 0;
      for (const auto& slot : worker.slots) cpus += slot.device == "cpu";
      labelled_gangs += cpus / 2;
      if (Free(worker, device) < least) continue;
      if (best == nullptr || Free(worker) < Free(*best)) best = &worker;
    }
    const WorkerSlots* found =
        board.FindFullest({least, device, asked},
                          [&](const WorkerSlots& worker) { return Free(worker, device) >= least; });
    ASSERT_EQ(found == nullptr ? "" : found->worker, best == nullptr ? "" : best->worker);
    ASSERT_EQ(board.capacity().CountGangs({2, "cpu", asked}, false), labelled_gangs);
  }
}

}  // namespace
}  // namespace traind
