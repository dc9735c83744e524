// trainrank's other way to be called: it tries a user's own model, and ends.
#pragma once

namespace traind {

// trainrank try-script FILE SHA256 NUMERIC WINDOW OUTPUTS [CARDINALITY...]
// Writes one line to standard output: {"parameters": N} or {"error": "..."}. It may use
// ten seconds of a core, and write no file.
int TryScriptMain(int argc, char** argv);

}  // namespace traind
