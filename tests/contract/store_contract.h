// What every Store keeps. A store's test instantiates the suite:
//   INSTANTIATE_TEST_SUITE_P(Sqlite, StoreContractTest, testing::Values(MakeFactory));
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>

#include "server/store/store.h"

namespace traind {

// Makes empty stores. `Again` opens what an earlier Store of this factory left
// (for a store that forgets: the same object).
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
// Some programs link the suite for its Jobs alone.
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(StoreContractTest);

// A Job as intake and core leave it: PREPARE and `folds` TRAIN tasks, pending.
Job NewJob(const std::string& id, int folds = 2);
// The same Job with the next version.
Job Next(const Job& job);
// A turn that changes these Jobs.
Mutations Change(std::vector<Job> jobs);
// Everything that is stored of a Job, as text: equal text, equal Jobs.
std::string Describe(const Job& job);

}  // namespace traind
