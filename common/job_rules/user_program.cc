#include "common/job_rules/user_program.h"

#include <utility>

namespace traind {

std::optional<UserProgram> UserProgramOf(const plain::JobSpec& spec) {
  UserProgram program;
  program.asks_gpu = spec.resources.device == "cuda";
  if (spec.run.has_value() && !spec.run->command.empty()) {
    program.run = *spec.run;
    return program;
  }
  if (!spec.model.command.has_value() || spec.model.command->train.empty()) return std::nullopt;
  const plain::CommandSpec& command = *spec.model.command;
  program.answers_rows = true;
  program.command_field = "model.command.train";
  program.folder_field = "model.command.code";
  program.predict = command.predict;
  program.oof = command.oof;
  if (!spec.data.test.empty()) program.predictions = command.predictions;
  plain::RunSpec& run = program.run;
  run.command = command.train;
  run.folder = command.code;
  run.folds = spec.data.folds;
  run.seed = spec.data.seed;
  run.epochs = command.epochs;
  run.environment = command.environment;
  run.checkpoints = command.checkpoints;
  run.setup = command.setup;
  run.sample_submission = command.sample_submission;
  run.network = command.network;
  run.writes = command.writes;
  program.settings = command.settings;
  run.expect.push_back(command.oof);
  if (!program.predictions.empty()) run.expect.push_back(program.predictions);
  return program;
}

}  // namespace traind
