#include "server/store/memory_store.h"

#include <gtest/gtest.h>

#include "tests/contract/store_contract.h"

namespace traind {
namespace {

class MemoryFactory final : public StoreFactory {
 public:
  Store& Open() override { return store_; }
  Store& Again() override { return store_; }

 private:
  MemoryStore store_;
};

INSTANTIATE_TEST_SUITE_P(Memory, StoreContractTest,
                         testing::Values([] { return std::make_unique<MemoryFactory>(); }));

TEST(MemoryStoreTest, FailsAsToldAndHeals) {
  MemoryStore store;
  store.FailCommits(absl::ResourceExhaustedError("full"));
  EXPECT_TRUE(absl::IsResourceExhausted(store.Commit(Change({NewJob("a-1")}))));
  EXPECT_TRUE(absl::IsNotFound(store.GetJob("a-1").status()));
  store.FailCommits(absl::OkStatus());
  EXPECT_EQ(store.Commit(Change({NewJob("a-1")})), absl::OkStatus());
}

}  // namespace
}  // namespace traind
