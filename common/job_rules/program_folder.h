// Which entries of the folder of a user's program are its own.
#pragma once

#include <absl/status/statusor.h>

#include <string>
#include <vector>

namespace traind {

// What Python leaves beside modules: nobody copies it.
inline constexpr char kCompiled[] = "__pycache__";

// Whether a folder of that name holds no code of the program, such as .git, .venv or node_modules.
bool IsOfTools(const std::string& name);

// What travels of a program's folder; paths are relative to it.
struct ProgramFiles {
  std::string root;                  // absolute, links resolved
  std::vector<std::string> files;    // regular ones, and links to such
  std::vector<std::string> folders;  // with a '/' at the end
};

// Lists all but what IgnoreRules of the folder ignore, folders of tools, compiled modules and the
// folder `left_out`; a folder behind a link is left out, too. Errors: those of reading.
absl::StatusOr<ProgramFiles> ListProgramFiles(const std::string& folder,
                                              const std::string& left_out);

}  // namespace traind
