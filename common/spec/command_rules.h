// Rules of programs of users: those of `run` and of model.command.
#pragma once

#include <functional>
#include <string>

#include "proto/job.pb.h"

namespace traind {

// Calls add(field path, what is wrong).
void CheckRunProgram(const v1::JobSpec& spec,
                     const std::function<void(const std::string&, const std::string&)>& add);

// Does the same for a Job whose model is a program. type: of the task; empty: it is not known yet.
// usual: the defaults of `train`, which may stand there.
void CheckCommand(const v1::JobSpec& spec, const std::string& type, const v1::TrainSpec& usual,
                  const std::function<void(const std::string&, const std::string&)>& add);

}  // namespace traind
