// Texts that are made from the table of verbs and options: completions and the manual.
#pragma once

#include <string>
#include <vector>

#include "client/command_table.h"
#include "client/environment.h"

namespace traind {

// Answers a shell: `trainctl __complete WORD...`, whose last word is being written. Prints a
// candidate per line; the line ":files" lets the shell complete file names. Asks traind for Jobs,
// for at most half a second.
int RunComplete(const std::vector<std::string>& args, Environment& environment);

// Returns the script that lets a shell call `trainctl __complete`. shell: bash, zsh or fish.
std::string CompletionScript(const std::string& shell);

// Returns trainctl(1), for man.
std::string ManualPage(CommandTable& table);
// Returns the list of all verbs and options in docs/TRAINCTL.md.
std::string OptionList(CommandTable& table);

}  // namespace traind
