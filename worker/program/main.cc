// trainprog: runs a user's program as a fold, for the Worker that started it or for a shell. Speaks
// worker/rank_protocol/messages.h over standard input and output; logs to standard error. With
// --keep it is the program's keeper (keeper.h).
#include <cstring>
#include <string>

#include "worker/program/keeper.h"
#include "worker/program/program_engine.h"
#include "worker/task/task_process.h"

int main(int argc, char** argv) {
  if (argc > 1 && std::strcmp(argv[1], traind::kKeepFlag) == 0) {
    return traind::RunKeeper(argc - 2, argv + 2);
  }
  traind::ProgramEngine engine;
  return traind::RunTaskProcess(engine, [] { return std::string("cpu"); });
}
