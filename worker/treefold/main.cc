// traintree: trains folds of boosted trees for the Worker that started it, or for a shell. Speaks
// worker/rank_protocol/messages.h over standard input and output; logs to standard error.
#include <string>

#include "worker/task/task_process.h"
#include "worker/treefold/tree_engine.h"

int main() {
  traind::TreeEngine engine;
  return traind::RunTaskProcess(engine, [] { return std::string("cpu"); });
}
