// The spec that submit and plan send: the file, and what the command line puts
// on top of it.
#pragma once

#include <absl/status/status.h>

#include <string>

#include "client/arguments.h"
#include "client/environment.h"
#include "common/spec/yaml_spec.h"

namespace traind {

struct SpecInput {
  SpecReadResult read;
  std::string text;  // as the user wrote it
};

// False where something is wrong, which it has said on stderr, each mistake with
// its place; `nothing` is what did not happen: "nothing submitted".
bool LoadSpec(const Arguments& arguments, Environment& environment, const std::string& nothing,
              SpecInput& input);

// traind's refusal on stderr, its lines that begin with a field's path at the
// place of that field; the exit code.
int ReportRefusal(Environment& environment, const SpecInput& input, const absl::Status& status,
                  const std::string& nothing);

}  // namespace traind
