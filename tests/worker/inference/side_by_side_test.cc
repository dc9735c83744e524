#include "worker/inference/side_by_side.h"

#include <absl/synchronization/mutex.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

namespace traind {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// A place where `expected` threads wait for each other; false: not all came in time.
class Meeting {
 public:
  explicit Meeting(int expected) : missing_(expected) {}
  bool Come() {
    const absl::MutexLock lock(&mutex_);
    --missing_;
    const auto all = [this] { return missing_ <= 0; };
    return mutex_.AwaitWithTimeout(absl::Condition(&all), absl::Seconds(30));
  }

 private:
  absl::Mutex mutex_;
  int missing_;
};

// Answers a row by twice its number. With a meeting, all instances predict at the same time.
class Doubles final : public RowModel {
 public:
  explicit Doubles(Meeting* meeting = nullptr) : meeting_(meeting) {}

  const InputSchema& input() const override { return schema_; }
  const ImageFields* image() const override { return nullptr; }
  const std::string& table_sha256() const override { return sha256_; }
  int64_t attempt() const override { return 1; }
  double epoch() const override { return 1; }
  int64_t step() const override { return 1; }
  int64_t RowsPerStep() const override { return 10; }
  absl::Status Predict(const LaterRows&, int64_t begin, int64_t end,
                       absl::Span<float> out) override {
    if (meeting_ != nullptr && !meeting_->Come()) return absl::DeadlineExceededError("alone");
    if (begin == fails_at) return absl::InternalError("no");
    for (int64_t row = begin; row < end; ++row) {
      out[static_cast<size_t>(2 * (row - begin))] = static_cast<float>(2 * row);
      out[static_cast<size_t>(2 * (row - begin) + 1)] = -1;
    }
    return absl::OkStatus();
  }

  int64_t fails_at = -1;

 private:
  Meeting* const meeting_;
  InputSchema schema_;
  std::string sha256_;
};

TEST(SideBySideTest, StepsCoverTheRowsAndAShortLastOneIsMerged) {
  EXPECT_THAT(StepEnds(0, 30, 10, 8), ElementsAre(10, 20, 30));
  EXPECT_THAT(StepEnds(0, 34, 10, 8), ElementsAre(10, 20, 34));
  EXPECT_THAT(StepEnds(0, 35, 10, 8), ElementsAre(10, 20, 30, 35));
  EXPECT_THAT(StepEnds(7, 35, 10, 2), ElementsAre(17, 27));
  EXPECT_THAT(StepEnds(0, 3, 10, 8), ElementsAre(3));
  EXPECT_THAT(StepEnds(3, 3, 10, 8), IsEmpty());
}

TEST(SideBySideTest, EachStepHasAThreadAndItsPlaceInTheAnswer) {
  Meeting meeting(3);
  std::vector<std::unique_ptr<Doubles>> owned;
  std::vector<RowModel*> models;
  for (int i = 0; i < 3; ++i) {
    owned.push_back(std::make_unique<Doubles>(&meeting));
    models.push_back(owned.back().get());
  }
  const std::vector<int64_t> ends = {15, 25, 31};
  std::vector<float> out(2 * 26);
  ASSERT_TRUE(PredictSideBySide(models, LaterRows(), 5, ends, absl::MakeSpan(out)).ok());
  for (int64_t row = 5; row < 31; ++row) {
    EXPECT_EQ(out[static_cast<size_t>(2 * (row - 5))], static_cast<float>(2 * row));
  }
}

TEST(SideBySideTest, AnErrorOfAnyStepIsReturned) {
  Doubles first, second;
  second.fails_at = 15;
  RowModel* const models[] = {&first, &second};
  const int64_t ends[] = {15, 25};
  std::vector<float> out(2 * 20);
  EXPECT_FALSE(PredictSideBySide(models, LaterRows(), 5, ends, absl::MakeSpan(out)).ok());
}

}  // namespace
}  // namespace traind
