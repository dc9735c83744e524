#include "worker/prepare/program_check.h"

#include <absl/strings/ascii.h>
#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_split.h>
#include <absl/strings/string_view.h>
#include <absl/time/time.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include "common/base/durable_file.h"
#include "common/base/run_program.h"
#include "common/base/status_macros.h"
#include "worker/prepare/python_modules.h"
#include "worker/task/failure.h"

namespace traind {
namespace {

namespace fs = std::filesystem;

constexpr absl::Duration kPatience = absl::Seconds(5);
constexpr size_t kMostBytes = 1 << 16;
constexpr absl::string_view kWithoutGpu = "torch!";

// Prints the modules that the script imports at its top and that are not there. Modules beside the
// script count as there. With an argument "gpu" it prints "torch!" where the script imports a
// PyTorch that was built for CPUs alone.
constexpr char kMissingModules[] = R"python(
import ast, importlib.util, os, re, sys
sys.path.insert(0, os.path.dirname(os.path.abspath(sys.argv[1])))
with open(sys.argv[1], encoding="utf-8", errors="replace") as f:
    tree = ast.parse(f.read(), sys.argv[1])
names = set()
for node in tree.body:
    if isinstance(node, ast.Import):
        names.update(alias.name.split(".")[0] for alias in node.names)
    elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
        names.add(node.module.split(".")[0])
def there(name):
    try:
        return importlib.util.find_spec(name) is not None
    except (ImportError, ValueError):
        return name in sys.modules
missing = sorted(name for name in names if not there(name))
if not missing and sys.argv[2] == "gpu" and "torch" in names:
    folder = os.path.dirname(importlib.util.find_spec("torch").origin)
    with open(os.path.join(folder, "version.py")) as f:
        built = dict(re.findall(r"^(cuda|hip)\b[^=\n]*= *(\S+)", f.read(), re.MULTILINE))
    if built.get("cuda") == "None" and built.get("hip", "None") == "None":
        missing = ["torch!"]
print(" ".join(missing))
)python";

std::string PathOf(const plain::RunSpec& run) {
  const auto given = run.environment.find("PATH");
  if (given != run.environment.end()) return given->second;
  const char* own = getenv("PATH");
  return own == nullptr ? "/usr/local/bin:/usr/bin:/bin" : own;
}

bool IsProgram(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored) && access(path.c_str(), X_OK) == 0;
}

// Returns where the command is; empty: nowhere.
std::string FindCommand(const plain::RunSpec& run) {
  const std::string& name = run.command[0];
  if (absl::StrContains(name, '/')) {
    const fs::path path = fs::path(run.folder) / name;  // an absolute name stays as it is
    return IsProgram(path) ? path.string() : "";
  }
  for (const absl::string_view folder : absl::StrSplit(PathOf(run), ':', absl::SkipEmpty())) {
    const fs::path path = fs::path(std::string(folder)) / name;
    if (IsProgram(path)) return path.string();
  }
  return "";
}

// Returns the script that a Python command runs; empty: it is no Python, or runs none.
std::string ScriptOf(const plain::RunSpec& run) {
  if (!absl::StartsWith(fs::path(run.command[0]).filename().string(), "python")) return "";
  for (size_t i = 1; i < run.command.size(); ++i) {
    const std::string& argument = run.command[i];
    if (absl::EndsWith(argument, ".py")) return argument;
    // Behind -c, -m and other options a word means something else.
    if (argument != "-u" && argument != "-O" && argument != "-B") return "";
  }
  return "";
}

// The script's folder and variables are those that it will have.
std::vector<std::string> CheckCommand(const plain::RunSpec& run, const std::string& python,
                                      const std::string& script, bool asks_gpu) {
  std::vector<std::string> command = {"/usr/bin/env", "-C", run.folder};
  for (const auto& [name, value] : run.environment) {
    command.push_back(absl::StrCat(name, "=", value));
  }
  command.insert(command.end(), {python, "-c", kMissingModules, script, asks_gpu ? "gpu" : ""});
  return command;
}

std::string VariableOf(const plain::RunSpec& run, const char* name) {
  const auto given = run.environment.find(name);
  if (given != run.environment.end()) return given->second;
  const char* own = getenv(name);
  return own == nullptr ? "" : own;
}

// Whether the script can import what it names; false: Python has to tell.
bool SurelyImports(const plain::RunSpec& run, const std::string& python, const fs::path& script) {
  if (!VariableOf(run, "PYTHONHOME").empty()) return false;
  const auto text = ReadFile(script.string());
  if (!text.ok()) return false;
  const auto modules = ImportedModules(*text);
  if (!modules.has_value()) return false;
  return AllModulesThere(*modules,
                         {python, script.parent_path().string(), VariableOf(run, "PYTHONPATH")});
}

absl::Status CheckScript(const UserProgram& program, const std::string& python,
                         const std::string& script) {
  const plain::RunSpec& run = program.run;
  std::error_code ignored;
  if (!fs::is_regular_file(fs::path(run.folder) / script, ignored)) {
    return UserError(
        absl::StrCat(program.command_field, ": there is no file '", script, "' in ", run.folder));
  }
  if (!program.asks_gpu && SurelyImports(run, python, fs::path(run.folder) / script)) {
    return absl::OkStatus();
  }
  const auto checked =
      RunProgram(CheckCommand(run, python, script, program.asks_gpu), kPatience, kMostBytes);
  if (!checked.ok() || checked->ended != 0) return absl::OkStatus();  // the run will tell
  const absl::string_view missing = absl::StripAsciiWhitespace(checked->output);
  if (missing.empty()) return absl::OkStatus();
  if (missing == kWithoutGpu) {
    return UserError(absl::StrCat("resources.device: cuda is asked for, but the torch of ", python,
                                  " is built for CPUs alone; install one with CUDA there, or name ",
                                  "another interpreter"));
  }
  return UserError(absl::StrCat(program.command_field, ": ", script, " imports what ", python,
                                " does not have: ", missing,
                                "; install it there, or name another interpreter"));
}

// The program runs in a copy of its folder, from which such a path leads elsewhere.
absl::Status CheckPaths(const std::string& field, const std::string& folder,
                        const std::vector<std::string>& command) {
  for (const std::string& argument : command) {
    const std::string path = fs::path(argument).lexically_normal().string();
    std::error_code ignored;
    if (path != ".." && !absl::StartsWith(path, "../")) continue;
    if (!fs::exists(fs::path(folder) / argument, ignored)) continue;
    return UserError(absl::StrCat(field, ": '", argument, "' leads out of ", folder,
                                  "; the program runs in a copy of that folder, so give the ",
                                  "absolute path ",
                                  (fs::path(folder) / argument).lexically_normal().string()));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckUserProgram(const UserProgram& program) {
  const plain::RunSpec& run = program.run;
  std::error_code ignored;
  if (!fs::is_directory(run.folder, ignored)) {
    return UserError(
        absl::StrCat(program.folder_field, ": ", run.folder, " is no folder any more"));
  }
  RETURN_IF_ERROR(CheckPaths(program.command_field, run.folder, run.command));
  if (!program.predict.empty()) {
    RETURN_IF_ERROR(CheckPaths("model.command.predict", run.folder, program.predict));
  }
  const std::string command = FindCommand(run);
  if (command.empty()) {
    return UserError(absl::StrCat(program.command_field, ": there is no program '", run.command[0],
                                  absl::StrContains(run.command[0], '/')
                                      ? absl::StrCat("' in ", run.folder)
                                      : absl::StrCat("' on the PATH ", PathOf(run))));
  }
  const std::string script = ScriptOf(run);
  return script.empty() ? absl::OkStatus() : CheckScript(program, command, script);
}

}  // namespace traind
