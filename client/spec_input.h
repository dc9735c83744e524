// Builds the spec that submit and plan send from the file and the command line.
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

// Reads the spec. Returns false on mistakes, after printing each one with its place to stderr;
// `nothing` says what did not happen: "nothing submitted".
bool LoadSpec(const Arguments& arguments, Environment& environment, const std::string& nothing,
              SpecInput& input);

// Prints traind's refusal to stderr, at the place of the field where a line begins with a field's
// path. Returns the exit code.
int ReportRefusal(Environment& environment, const SpecInput& input, const absl::Status& status,
                  const std::string& nothing);

}  // namespace traind
