#include "worker/data/media_loader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <numeric>

namespace traind {
namespace {

using ::testing::ElementsAre;

// The tokens of a row are its number and the seed.
class NumberSource final : public MediaSource {
 public:
  absl::Status Load(const MediaRequest& request, MediaBatch& out) const override {
    ++loads;
    out.tokens.clear();
    out.ends.clear();
    for (const int32_t row : request.rows) {
      if (row == bad_row) return absl::InvalidArgumentError("row is damaged");
      out.tokens.push_back(row);
      out.tokens.push_back(static_cast<int32_t>(request.seed));
      out.ends.push_back(static_cast<int32_t>(out.tokens.size()));
    }
    return absl::OkStatus();
  }
  int32_t bad_row = -1;
  mutable std::atomic<int> loads{0};
};

TEST(MediaLoaderTest, EachBatchIsThePartOfTheOrderThatWasAskedFor) {
  auto source = std::make_shared<NumberSource>();
  MediaLoader loader(source);
  loader.SetOrder({5, 4, 3, 2, 1}, 7);
  const auto first = loader.GetBatch(0, 2);
  ASSERT_TRUE(first.ok());
  EXPECT_THAT((*first)->tokens, ElementsAre(5, 7, 4, 7));
  EXPECT_THAT((*first)->ends, ElementsAre(2, 4));
  EXPECT_THAT((*loader.GetBatch(2, 2))->tokens, ElementsAre(3, 7, 2, 7));
  EXPECT_THAT((*loader.GetBatch(4, 1))->tokens, ElementsAre(1, 7));
  EXPECT_EQ(source->loads, 3);  // each batch is loaded once, and nothing beyond the end
}

TEST(MediaLoaderTest, ABatchThatWasNotExpectedIsLoadedAllTheSame) {
  auto source = std::make_shared<NumberSource>();
  MediaLoader loader(source);
  std::vector<int32_t> order(1000);
  std::iota(order.begin(), order.end(), 0);
  loader.SetOrder(order, 1);
  for (int64_t begin = 0; begin < 900; begin += 9) {
    const int64_t count = 1 + begin % 5;
    const auto batch = loader.GetBatch(begin, count);
    ASSERT_TRUE(batch.ok());
    ASSERT_EQ((*batch)->ends.size(), static_cast<size_t>(count));
    EXPECT_EQ((*batch)->tokens[0], begin);
  }
  loader.SetOrder(order, 2);
  EXPECT_THAT((*loader.GetBatch(3, 1))->tokens, ElementsAre(3, 2));
  EXPECT_TRUE((*loader.GetBatch(0, 0))->tokens.empty());
}

TEST(MediaLoaderTest, AnUnreadableRowFailsItsOwnBatchOnly) {
  auto source = std::make_shared<NumberSource>();
  source->bad_row = 2;
  MediaLoader loader(source);
  loader.SetOrder({0, 1, 2, 3}, 0);
  EXPECT_TRUE(loader.GetBatch(0, 2).ok());
  EXPECT_EQ(loader.GetBatch(2, 2).status().message(), "row is damaged");
  EXPECT_THAT((*loader.GetBatch(3, 1))->tokens, ElementsAre(3, 0));
}

}  // namespace
}  // namespace traind
