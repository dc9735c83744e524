// traintree: trains folds of boosted trees for the Worker that started it, or for a shell. Speaks
// worker/rank_protocol/messages.h over standard input and output; logs to standard error.
#include <stdlib.h>

#include <string>

#include "worker/task/task_process.h"
#include "worker/treefold/tree_engine.h"

namespace {

// Threads of OpenMP that wait for each other spin for a moment, then sleep. By default they spin
// for milliseconds, which on cores that others use, too, takes most of the time. The libraries read
// the variable when they are opened; whoever has set one keeps it.
void LetWaitingThreadsSleep() {
  if (getenv("OMP_WAIT_POLICY") == nullptr) setenv("GOMP_SPINCOUNT", "1000", /*overwrite=*/0);
}

}  // namespace

int main() {
  LetWaitingThreadsSleep();
  traind::TreeEngine engine;
  return traind::RunTaskProcess(engine, [] { return std::string("cpu"); });
}
