#include "worker/prepare/python_modules.h"

#include <absl/strings/ascii.h>
#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_split.h>
#include <absl/strings/strip.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <system_error>

namespace traind {
namespace {

namespace fs = std::filesystem;

// Those of the standard library that may have no file.
constexpr absl::string_view kBuiltIn[] = {
    "array",     "atexit", "binascii",    "builtins", "cmath", "errno",  "faulthandler",
    "fcntl",     "gc",     "grp",         "itertools", "marshal", "math", "posix",
    "pwd",       "pyexpat", "select",     "sys",      "syslog", "time",  "unicodedata",
    "zlib"};

bool IsName(absl::string_view text) {
  return !text.empty() && !absl::ascii_isdigit(text[0]) &&
         std::all_of(text.begin(), text.end(), [](char c) {
           return absl::ascii_isalnum(c) || c == '_' || static_cast<unsigned char>(c) >= 0x80;
         });
}

// "a" of "a.b as c".
absl::string_view FirstName(absl::string_view text) {
  text = absl::StripAsciiWhitespace(text);
  return text.substr(0, text.find_first_of(". \t"));
}

// Adds what can be imported from a folder.
void AddModules(const fs::path& folder, std::set<std::string>& there) {
  std::error_code error;
  for (fs::directory_iterator entries(folder, error), end; !error && entries != end;
       entries.increment(error)) {
    const std::string file = entries->path().filename().string();
    const std::string name = file.substr(0, file.find('.'));
    if (!IsName(name)) continue;
    std::error_code ignored;
    const bool module = absl::EndsWith(file, ".py") || absl::EndsWith(file, ".so") ||
                        (name == file && entries->is_directory(ignored));
    if (module) there.insert(name);
  }
}

// The folders prefix/lib/python3.N, of which several versions may be there.
std::vector<fs::path> Libraries(const fs::path& prefix, const std::string& version) {
  std::vector<fs::path> found;
  for (const char* lib : {"lib", "lib64"}) {
    std::error_code error;
    for (fs::directory_iterator entries(prefix / lib, error), end; !error && entries != end;
         entries.increment(error)) {
      const std::string name = entries->path().filename().string();
      if (version.empty() ? absl::StartsWith(name, "python3.") : name == version) {
        found.push_back(entries->path());
      }
    }
  }
  return found;
}

void AddPackages(const fs::path& prefix, const std::string& version,
                 std::set<std::string>& there) {
  for (const fs::path& library : Libraries(prefix, version)) {
    AddModules(library / "site-packages", there);
    AddModules(library / "dist-packages", there);
  }
  AddModules(prefix / "lib/python3/dist-packages", there);
}

// A virtual environment says whether it has the packages of the system, too.
bool SeesSystem(const fs::path& settings) {
  std::ifstream file(settings);
  for (std::string line; std::getline(file, line);) {
    const std::vector<std::string> parts = absl::StrSplit(line, absl::MaxSplits('=', 1));
    if (parts.size() == 2 &&
        absl::StripAsciiWhitespace(parts[0]) == "include-system-site-packages") {
      return absl::AsciiStrToLower(absl::StripAsciiWhitespace(parts[1])) == "true";
    }
  }
  return false;
}

std::set<std::string> ModulesOf(const PythonPlaces& places) {
  std::set<std::string> there(std::begin(kBuiltIn), std::end(kBuiltIn));
  AddModules(places.beside, there);
  for (const absl::string_view folder :
       absl::StrSplit(places.python_path, ':', absl::SkipEmpty())) {
    AddModules(fs::path(std::string(folder)), there);
  }
  std::error_code error;
  const fs::path real = fs::canonical(places.interpreter, error);
  if (error) return there;
  const std::string binary = real.filename().string();
  const std::string version = absl::StartsWith(binary, "python3.") ? binary : "";
  const fs::path prefix = fs::path(places.interpreter).parent_path().parent_path();
  const fs::path base = real.parent_path().parent_path();
  for (const fs::path& library : Libraries(base, version)) {
    AddModules(library, there);
    AddModules(library / "lib-dynload", there);
  }
  AddPackages(prefix, version, there);
  const fs::path settings = prefix / "pyvenv.cfg";
  if (fs::exists(settings, error) && !SeesSystem(settings)) return there;
  AddPackages(base, version, there);
  if (base == "/usr") AddPackages("/usr/local", version, there);
  return there;
}

}  // namespace

std::optional<std::vector<std::string>> ImportedModules(absl::string_view script) {
  std::vector<std::string> modules;
  for (absl::string_view line : absl::StrSplit(script, '\n')) {
    const bool plain = absl::ConsumePrefix(&line, "import ");
    if (!plain && !absl::ConsumePrefix(&line, "from ")) {
      // Another statement may have an import behind it.
      if (absl::StrContains(line, ";") && absl::StrContains(line, "import ")) return std::nullopt;
      continue;
    }
    line = line.substr(0, line.find('#'));
    if (line.find_first_of(plain ? ";\\" : ";") != absl::string_view::npos) return std::nullopt;
    if (!plain) {
      line = absl::StripLeadingAsciiWhitespace(line);
      if (absl::StartsWith(line, ".")) continue;
      modules.emplace_back(FirstName(line));
      continue;
    }
    for (const absl::string_view part : absl::StrSplit(line, ',')) {
      modules.emplace_back(FirstName(part));
    }
  }
  const bool named = std::all_of(modules.begin(), modules.end(), IsName);
  return named ? std::optional(std::move(modules)) : std::nullopt;
}

bool AllModulesThere(const std::vector<std::string>& modules, const PythonPlaces& places) {
  if (modules.empty()) return true;
  const std::set<std::string> there = ModulesOf(places);
  return std::all_of(modules.begin(), modules.end(),
                     [&there](const std::string& name) { return there.count(name) > 0; });
}

}  // namespace traind
