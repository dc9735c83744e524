#include "server/schedule/slot_board.h"

#include <absl/strings/str_cat.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

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

std::string Fullest(const SlotBoard& board, const std::string& device, int least, bool shared) {
  const WorkerSlots* found =
      board.FindFullest(device, least, shared,
                        [&](const WorkerSlots& worker) { return Free(worker, device) >= least; });
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
    const bool shared = draw(1) == 0;
    const WorkerSlots* best = nullptr;
    for (const auto& [id, worker] : board.workers()) {
      if ((worker.own_folder && shared) || Free(worker, device) < least) continue;
      if (best == nullptr || Free(worker) < Free(*best)) best = &worker;
    }
    ASSERT_EQ(Fullest(board, device, least, shared), best == nullptr ? "" : best->worker);
  }
}

}  // namespace
}  // namespace traind
