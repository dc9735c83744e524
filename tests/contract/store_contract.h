// The contract of every Store. A store's test instantiates the suite:
//   INSTANTIATE_TEST_SUITE_P(Sqlite, StoreContractTest, testing::Values(MakeFactory));
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>

#include "server/store/store.h"
#include "tests/contract/stored_jobs.h"

namespace traind {

// Makes empty stores. `Again` opens the data of this factory's previous Store (for a store without
// a disk: the same object).
class StoreFactory {
 public:
  virtual ~StoreFactory() = default;
  virtual Store& Open() = 0;
  virtual Store& Again() = 0;
};

class StoreContractTest
    : public testing::TestWithParam<std::function<std::unique_ptr<StoreFactory>()>> {
 protected:
  StoreContractTest() : factory_(GetParam()()), store_(&factory_->Open()) {}
  void OpenAgain() { store_ = &factory_->Again(); }

  std::unique_ptr<StoreFactory> factory_;
  Store* store_;
};

}  // namespace traind
