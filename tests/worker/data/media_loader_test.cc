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
    augmented += request.training ? 1 : 0;
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
  mutable std::atomic<int> loads{0}, augmented{0};
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

TEST(MediaLoaderTest, RowsToBePredictedAreLoadedAheadAsTheyAre) {
  auto source = std::make_shared<NumberSource>();
  MediaLoader loader(source, 2, /*training=*/false);
  loader.SetOrder({5, 4, 3}, 0);
  EXPECT_THAT((*loader.GetBatch(0, 2))->tokens, ElementsAre(5, 0, 4, 0));
  EXPECT_THAT((*loader.GetBatch(2, 1))->tokens, ElementsAre(3, 0));
  EXPECT_EQ(source->augmented, 0);
  MediaLoader training(source);
  training.SetOrder({1}, 0);
  ASSERT_TRUE(training.GetBatch(0, 1).ok());
  EXPECT_EQ(source->augmented, 1);
}

TEST(MediaLoaderTest, EachWholeBatchIsStagedOnceAndAStageMayFail) {
  for (const int threads : {0, 1, 3}) {
    MediaLoader loader(std::make_shared<NumberSource>(), threads, /*training=*/true,
                       [](MediaBatch& batch) -> absl::Status {
                         if (batch.tokens[0] == 2) return absl::ResourceExhaustedError("no memory");
                         EXPECT_EQ(batch.staged, nullptr);
                         batch.staged = std::make_shared<const size_t>(batch.ends.size());
                         return absl::OkStatus();
                       });
    loader.SetOrder({6, 5, 4, 3, 2, 1}, 7);
    for (const int64_t begin : {0, 2}) {
      const auto batch = loader.GetBatch(begin, 2);
      ASSERT_TRUE(batch.ok());
      EXPECT_EQ(*static_cast<const size_t*>((*batch)->staged.get()), 2);
    }
    EXPECT_TRUE(absl::IsResourceExhausted(loader.GetBatch(4, 2).status()));
  }
}

TEST(MediaLoaderTest, WithoutThreadsNothingIsLoadedAhead) {
  auto source = std::make_shared<NumberSource>();
  MediaLoader loader(source, 0, /*training=*/false);
  loader.SetOrder({5, 4, 3}, 0);
  EXPECT_THAT((*loader.GetBatch(0, 2))->tokens, ElementsAre(5, 0, 4, 0));
  EXPECT_EQ(source->loads, 1);
  EXPECT_THAT((*loader.GetBatch(2, 1))->tokens, ElementsAre(3, 0));
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

// Dense media of a row, and a target.
class DenseSource final : public MediaSource {
 public:
  absl::Status Load(const MediaRequest& request, MediaBatch& out) const override {
    const auto count = static_cast<int64_t>(request.rows.size());
    out.shape = {count, 2};
    out.target_shape = {count, 1, 1};
    out.values.clear();
    out.target.clear();
    for (const int32_t row : request.rows) {
      out.values.insert(out.values.end(), {static_cast<float>(row), 0.5f});
      out.target.push_back(static_cast<float>(-row));
    }
    return absl::OkStatus();
  }
};

TEST(MediaLoaderTest, BatchesAreTheSameForAnyNumberOfThreads) {
  std::vector<int32_t> order(400);
  std::iota(order.rbegin(), order.rend(), 0);
  const auto read = [&order](std::shared_ptr<const MediaSource> source, int threads) {
    MediaLoader loader(std::move(source));
    loader.SetOrder(order, 3);
    std::vector<MediaBatch> batches;
    for (int64_t begin = 0; begin < 390; begin += 13) {
      if (begin == 26) loader.AddThreadsUpTo(threads);
      batches.push_back(**loader.GetBatch(begin, 13));
    }
    EXPECT_EQ(loader.threads(), threads);
    return batches;
  };
  for (const int threads : {2, 3, 16}) {
    const auto one = read(std::make_shared<NumberSource>(), 1);
    const auto many = read(std::make_shared<NumberSource>(), threads);
    const auto dense = read(std::make_shared<DenseSource>(), 1);
    const auto dense_many = read(std::make_shared<DenseSource>(), threads);
    for (size_t i = 0; i < one.size(); ++i) {
      EXPECT_EQ(one[i].tokens, many[i].tokens);
      EXPECT_EQ(one[i].ends, many[i].ends);
      EXPECT_EQ(dense[i].shape, dense_many[i].shape);
      EXPECT_EQ(dense[i].values, dense_many[i].values);
      EXPECT_EQ(dense[i].target_shape, dense_many[i].target_shape);
      EXPECT_EQ(dense[i].target, dense_many[i].target);
    }
  }
}

TEST(MediaLoaderTest, OfSeveralThreadsOneFailsTheBatchAndTheNextIsWhole) {
  auto source = std::make_shared<NumberSource>();
  source->bad_row = 5;
  MediaLoader loader(source, 3);
  loader.SetOrder({0, 1, 2, 3, 4, 5, 6, 7, 8}, 0);
  EXPECT_TRUE(loader.GetBatch(0, 3).ok());
  EXPECT_EQ(loader.GetBatch(3, 3).status().message(), "row is damaged");
  EXPECT_THAT((*loader.GetBatch(6, 3))->ends, ElementsAre(2, 4, 6));
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
