#include <absl/strings/str_cat.h>

#include "client/contexts.h"
#include "client/exit_codes.h"
#include "client/formats.h"
#include "client/render_table.h"
#include "client/verbs.h"
#include "common/base/host_port.h"
#include "common/spec/field_text.h"

namespace traind {
namespace {

constexpr char kUsage[] =
    "trainctl: config view | list | set NAME server=HOST:PORT output=wide | use NAME | remove "
    "NAME\n";

int Fail(Environment& environment, const std::string& message) {
  environment.err << "trainctl: " << message << "\n";
  return kExitUsage;
}

int List(const ContextFile& file, Environment& environment) {
  if (file.contexts.empty()) {
    environment.err << "no contexts; make one: trainctl config set lab server=HOST:PORT\n";
    return kExitOk;
  }
  TextTable table({"CURRENT", "CONTEXT", "SERVER", "OUTPUT"});
  for (const auto& [name, context] : file.contexts) {
    table.Add({name == file.current ? "*" : "", name, context.server, context.output});
  }
  environment.out << table.ToString();
  return kExitOk;
}

int Save(const ContextFile& file, Environment& environment) {
  const absl::Status written = WriteContexts(environment.config_file, file);
  return written.ok() ? kExitOk : ReportError(environment, written);
}

// words: "set", the name, and key=value...
int Set(const std::vector<std::string>& words, ContextFile file, Environment& environment) {
  Context& context = file.contexts[words[1]];
  for (size_t i = 2; i < words.size(); ++i) {
    const size_t equals = words[i].find('=');
    const std::string key = words[i].substr(0, equals);
    const std::string value = equals == std::string::npos ? "" : words[i].substr(equals + 1);
    if (key == "server") {
      const absl::Status valid = CheckHostPorts(value, 1);
      if (!valid.ok()) return Fail(environment, absl::StrCat("server ", valid.message()));
      context.server = value;
    } else if (key == "output") {
      if (value != "table" && OutputFormatOf(value) == OutputFormat::kTable) {
        return Fail(environment,
                    absl::StrCat("output '", Printable(value), "' is no form; see -o"));
      }
      context.output = value;
    } else {
      return Fail(environment, absl::StrCat("'", Printable(words[i]),
                                            "' is neither server=HOST:PORT nor output=FORM"));
    }
  }
  // The first context is the current one.
  if (file.current.empty()) file.current = words[1];
  return Save(file, environment);
}

}  // namespace

int RunConfig(const Arguments& arguments, Environment& environment) {
  const std::vector<std::string>& words = arguments.words;
  const std::string what = words.empty() ? "list" : words[0];
  auto read = ReadContexts(environment.config_file);
  if (!read.ok()) return Fail(environment, std::string(read.status().message()));
  ContextFile file = *std::move(read);
  const bool named = words.size() == 2;
  if (what == "list" && words.size() <= 1) return List(file, environment);
  if (what == "set" && words.size() >= 3) return Set(words, std::move(file), environment);
  if (what == "view" && words.size() == 1) {
    environment.out << environment.config_file << "\n";
    return List(file, environment);
  }
  if ((what == "use" || what == "remove") && named && file.contexts.count(words[1]) == 0) {
    environment.err << "trainctl: there is no context '" << Printable(words[1]) << "'\n";
    return kExitNotFound;
  }
  if (what == "use" && named) {
    file.current = words[1];
    return Save(file, environment);
  }
  if (what == "remove" && named) {
    file.contexts.erase(words[1]);
    if (file.current == words[1]) file.current.clear();
    return Save(file, environment);
  }
  environment.err << kUsage;
  return kExitUsage;
}

}  // namespace traind
