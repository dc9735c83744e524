#include "client/spec_input.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_split.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <istream>
#include <nlohmann/json.hpp>

#include "client/exit_codes.h"
#include "client/verbs.h"
#include "common/spec/field_text.h"
#include "common/wire/error_details.h"

namespace traind {
namespace {

// One byte more than a spec may have, so that a larger one can be refused.
constexpr size_t kMostBytes = (1 << 20) + 1;

std::string ReadUpTo(std::istream& in, size_t most) {
  std::string text(most, '\0');
  in.read(text.data(), static_cast<std::streamsize>(most));
  text.resize(static_cast<size_t>(in.gcount()));
  return text;
}

bool ReadText(const Arguments& arguments, Environment& environment, SpecInput& input) {
  if (arguments.file.empty()) {  // the spec comes from the Job of --from
    input.text = "{}\n";
    return true;
  }
  if (arguments.file == "-") {
    input.text = ReadUpTo(environment.in, kMostBytes);
    return true;
  }
  std::error_code error;
  std::ifstream in;
  if (!std::filesystem::is_directory(arguments.file, error)) {
    errno = 0;
    in.open(arguments.file, std::ios::binary);
  } else {
    errno = EISDIR;
  }
  if (!in.is_open() || !in) {
    environment.err << "trainctl: cannot read " << Printable(arguments.file, 4096) << ": "
                    << std::strerror(errno == 0 ? EIO : errno) << "\n";
    return false;
  }
  input.text = ReadUpTo(in, kMostBytes);
  return true;
}

// Returns false if a flag is malformed.
bool AddOverrides(const Arguments& arguments, Environment& environment,
                  std::vector<SpecOverride>& overrides) {
  for (const std::string& set : arguments.sets) {
    const size_t equals = set.find('=');
    if (equals == std::string::npos || equals == 0) {
      environment.err << "trainctl: --set '" << Printable(set)
                      << "' has no value; write it like --set train.epochs=3\n";
      return false;
    }
    const std::string path = set.substr(0, equals);
    overrides.push_back({"--set " + Printable(path), path, set.substr(equals + 1)});
  }
  for (const std::string& label : arguments.labels) {
    std::string key, value;
    if (!SplitLabel(environment, label, key, value)) return false;
    overrides.push_back({"--label " + Printable(key), "labels." + key, value});
  }
  if (arguments.budget) overrides.push_back({"--budget", "budget.time", *arguments.budget});
  if (arguments.deadline)
    overrides.push_back({"--deadline", "budget.deadline", *arguments.deadline});
  if (arguments.from) overrides.push_back({"--from", "from", *arguments.from});
  if (!arguments.after.empty()) {
    overrides.push_back({"--after", "after.jobs", nlohmann::json(arguments.after).dump()});
  }
  if (arguments.cache) overrides.push_back({"--cache", "cache", *arguments.cache});
  if (arguments.preset) overrides.push_back({"--preset", "preset", *arguments.preset});
  if (arguments.name) overrides.push_back({"--name", "name", *arguments.name});
  return true;
}

std::string Count(size_t n) { return absl::StrCat(n, n == 1 ? " error" : " errors"); }

}  // namespace

bool LoadSpec(const Arguments& arguments, Environment& environment, const std::string& nothing,
              SpecInput& input) {
  SpecReadOptions options;
  options.file = arguments.file == "-"    ? "stdin"
                 : arguments.file.empty() ? "--from"
                                          : Printable(arguments.file, 4096);
  options.now = environment.clock.WallNow();
  std::error_code error;
  const std::filesystem::path spec = arguments.file == "-" || arguments.file.empty()
                                         ? std::filesystem::current_path(error) / "stdin"
                                         : std::filesystem::absolute(arguments.file, error);
  options.base_dir = spec.parent_path().lexically_normal().string();
  if (!ReadText(arguments, environment, input) ||
      !AddOverrides(arguments, environment, options.overrides)) {
    return false;
  }
  input.read = ReadSpec(input.text, options);
  if (input.read.problems.empty()) return true;
  for (const SpecProblem& problem : input.read.problems) {
    environment.err << problem.ToString() << "\n";
  }
  environment.err << Count(input.read.problems.size()) << ", " << nothing << "\n";
  return false;
}

int ReportRefusal(Environment& environment, const SpecInput& input, const absl::Status& status,
                  const std::string& nothing) {
  if (!absl::IsInvalidArgument(status)) return ReportError(environment, status);
  size_t errors = 0;
  for (absl::string_view line : absl::StrSplit(status.message(), '\n', absl::SkipWhitespace())) {
    const absl::string_view field = FieldOf(line);
    environment.err << (field.empty() ? "trainctl" : input.read.PlaceOf(field))
                    << ": error: " << Printable(line, 2000) << "\n";
    ++errors;
  }
  environment.err << Count(errors) << ", " << nothing << "\n";
  return ExitCodeOf(status);
}

}  // namespace traind
