// Whether a Python script can import what it names, as far as a look at its text and at folders
// tells. Starting Python to ask takes longer than many a script.
#pragma once

#include <absl/strings/string_view.h>

#include <optional>
#include <string>
#include <vector>

namespace traind {

// Returns the modules that the lines of a script import at its top, each up to its first point;
// lines of a text in quotes may be among them. None: a line is not understood. Threads: safe.
std::optional<std::vector<std::string>> ImportedModules(absl::string_view script);

struct PythonPlaces {
  std::string interpreter;  // absolute
  std::string beside;       // the script's folder
  std::string python_path;  // PYTHONPATH
};

// Whether all of these modules are in the standard library, beside the script, in PYTHONPATH, or
// among the interpreter's packages. False does not say that one is missing: a package may bring
// paths of its own. Threads: safe.
bool AllModulesThere(const std::vector<std::string>& modules, const PythonPlaces& places);

}  // namespace traind
