// traintree keeps the contract of programs that train folds, with either library.
#include "tests/contract/fold_trainer_contract.h"

namespace traind {
namespace {

// Rounds of a made-up table take less than a millisecond, so that these have very many of them.
TrainerProgram Lightgbm() {
  return {"worker/traintree",
          R"({"model":{"lightgbm":{"num_iterations":3000,"learning_rate":0.01,"num_leaves":7,)"
          R"("early_stopping_round":0}}})",
          R"({"model":{"lightgbm":{"num_iterations":100000,"learning_rate":0.0001,)"
          R"("early_stopping_round":0}}})",
          60};
}

TrainerProgram Xgboost() {
  return {"worker/traintree",
          R"({"model":{"xgboost":{"num_boost_round":1500,"learning_rate":0.01,"max_depth":3,)"
          R"("max_leaves":8,"early_stopping_rounds":0}}})",
          R"({"model":{"xgboost":{"num_boost_round":20000,"learning_rate":0.0001,)"
          R"("early_stopping_rounds":0}}})",
          60};
}

INSTANTIATE_TEST_SUITE_P(Lightgbm, FoldTrainerContractTest, testing::Values(Lightgbm()));
INSTANTIATE_TEST_SUITE_P(Xgboost, FoldTrainerContractTest, testing::Values(Xgboost()));

}  // namespace
}  // namespace traind
