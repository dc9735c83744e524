// A program without LibTorch keeps the contract of those that train folds.
#include "tests/contract/fold_trainer_contract.h"

namespace traind {
namespace {

INSTANTIATE_TEST_SUITE_P(Shares, FoldTrainerContractTest,
                         testing::Values(TrainerProgram{"tests/worker/task/share_trainer", "{}"}));

}  // namespace
}  // namespace traind
