// The program of its user that a Job's folds run, for those who check it and those who run it.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "proto/plain/job.h"

namespace traind {

struct UserProgram {
  // A model.command has the same fields under other names. Its folds and seed are those of `data`,
  // and `expect` are the files with its predictions.
  plain::RunSpec run;
  // The fields of the spec, for messages.
  std::string command_field = "run.command";
  std::string folder_field = "run.folder";

  // model.command: the program answers for the rows of `data`. Else its files are its answer.
  bool answers_rows = false;
  std::vector<std::string> predict;  // the command that answers after a cut; empty: none
  std::string predictions, oof;  // patterns of its files; predictions is empty without data.test
  std::map<std::string, std::string> settings;  // what words in braces stand for
  bool asks_gpu = false;                        // resources.device: cuda
};

// Returns nothing where networks, trees or nobody trains.
std::optional<UserProgram> UserProgramOf(const plain::JobSpec& spec);

}  // namespace traind
