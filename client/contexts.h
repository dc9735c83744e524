// The configuration file of trainctl: named contexts, one of which is the current one.
//
//   current: lab
//   contexts:
//     lab: {server: "gpu01:7070", output: wide}
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <map>
#include <string>

#include "client/environment.h"

namespace traind {

struct Context {
  std::string server;  // empty: not said
  std::string output;  // of lists; empty: not said
};

struct ContextFile {
  std::string current;  // empty: none
  std::map<std::string, Context> contexts;
};

// Reads the file; a missing one has no contexts. Errors: InvalidArgument with file, line and
// column.
absl::StatusOr<ContextFile> ReadContexts(const std::string& path);
// Replaces the file. Errors: those of writing.
absl::Status WriteContexts(const std::string& path, const ContextFile& file);

// Fills in the server and the form of the output where the command line does not say them: from
// $TRAINCTL_SERVER (server only), the context, the defaults. context: of the command line; empty:
// $TRAINCTL_CONTEXT, or the current one. `output` of a context counts for verbs that print lists.
// Errors: InvalidArgument: a damaged file; NotFound: there is no such context.
absl::Status ApplyContext(const Environment& environment, const std::string& verb,
                          const std::string& context, std::string& server, std::string& output);

}  // namespace traind
