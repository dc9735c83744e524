#include "client/contexts.h"

#include <absl/strings/str_cat.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <vector>

#include "client/command_table.h"
#include "client/formats.h"
#include "common/base/durable_file.h"
#include "common/base/host_port.h"
#include "common/base/status_macros.h"
#include "common/base/suggest.h"
#include "common/spec/field_text.h"
#include "common/spec/yaml_tree.h"
#include "common/wire/render_json.h"

namespace traind {
namespace {

constexpr char kDefaultServer[] = "127.0.0.1:7070";

// Reads the tree of one file.
class Reader {
 public:
  explicit Reader(std::string path) : path_(std::move(path)) {}

  absl::StatusOr<ContextFile> Read(const std::string& text) {
    YamlError error;
    const auto root = tree_.Parse(text, 0, error);
    if (!root) return Wrong(error.line, error.column, error.message);
    ContextFile file;
    if (tree_.at(*root).kind == YamlNode::Kind::kNull) return file;
    RETURN_IF_ERROR(ForEach(*root, [&](const std::string& key, int value) {
      if (key == "current") return Take(value, file.current);
      if (key != "contexts") return Unknown(value, key, {"current", "contexts"});
      return ForEach(value, [&](const std::string& name, int context) {
        return ReadContext(context, file.contexts[name]);
      });
    }));
    return file;
  }

 private:
  absl::Status Wrong(int line, int column, const std::string& message) const {
    return absl::InvalidArgumentError(absl::StrCat(path_, ":", line, ":", column, ": ", message));
  }
  absl::Status WrongAt(int node, const std::string& message) const {
    return Wrong(tree_.at(node).line, tree_.at(node).column, message);
  }
  absl::Status Unknown(int node, const std::string& key, const std::vector<std::string>& keys) {
    return WrongAt(node, absl::StrCat("unknown key '", Printable(key), "'", DidYouMean(key, keys)));
  }

  template <typename Visit>
  absl::Status ForEach(int node, const Visit& visit) {
    if (tree_.at(node).kind == YamlNode::Kind::kNull) return absl::OkStatus();
    if (tree_.at(node).kind != YamlNode::Kind::kMap) return WrongAt(node, "expected key: value");
    for (const auto& [key, value] : tree_.at(node).entries) {
      RETURN_IF_ERROR(visit(tree_.at(key).text, value));
    }
    return absl::OkStatus();
  }

  absl::Status Take(int node, std::string& into) const {
    if (tree_.at(node).kind == YamlNode::Kind::kNull) return absl::OkStatus();
    if (tree_.at(node).kind != YamlNode::Kind::kScalar) return WrongAt(node, "expected a word");
    into = tree_.at(node).text;
    return absl::OkStatus();
  }

  absl::Status ReadContext(int node, Context& context) {
    return ForEach(node, [&](const std::string& key, int value) {
      if (key == "server") return Take(value, context.server);
      if (key == "output") return Take(value, context.output);
      return Unknown(value, key, {"server", "output"});
    });
  }

  const std::string path_;
  YamlTree tree_;
};

}  // namespace

absl::StatusOr<ContextFile> ReadContexts(const std::string& path) {
  std::error_code error;
  if (path.empty() || !std::filesystem::exists(path, error)) return ContextFile();
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  return Reader(path).Read(text);
}

absl::Status WriteContexts(const std::string& path, const ContextFile& file) {
  std::string text;
  if (!file.current.empty()) absl::StrAppend(&text, "current: ", JsonString(file.current), "\n");
  text += "contexts:\n";
  for (const auto& [name, context] : file.contexts) {
    absl::StrAppend(&text, "  ", JsonString(name), ":\n");
    if (!context.server.empty()) {
      absl::StrAppend(&text, "    server: ", JsonString(context.server), "\n");
    }
    if (!context.output.empty()) absl::StrAppend(&text, "    output: ", context.output, "\n");
  }
  RETURN_IF_ERROR(MakeDirs(std::filesystem::path(path).parent_path().string()));
  return WriteFileDurably(path, text);
}

absl::Status ApplyContext(const Environment& environment, const std::string& verb,
                          const std::string& context, std::string& server, std::string& output) {
  // Verbs that need no server, or mend the file, must work with a damaged file, too.
  if (verb == "config" || verb == "completion" || verb == "man" || verb == "version") {
    if (server.empty()) server = kDefaultServer;
    if (output.empty()) output = "table";
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(const ContextFile file, ReadContexts(environment.config_file));
  std::string name = context.empty() ? environment.default_context : context;
  const bool asked = !name.empty();
  if (!asked) name = file.current;
  const auto found = file.contexts.find(name);
  if (!name.empty() && found == file.contexts.end()) {
    std::vector<std::string> names;
    for (const auto& [known, unused] : file.contexts) names.push_back(known);
    return absl::NotFoundError(absl::StrCat("there is no context '", Printable(name), "' in ",
                                            environment.config_file, DidYouMean(name, names),
                                            "; to see them: trainctl config list"));
  }
  const Context chosen = found == file.contexts.end() ? Context() : found->second;
  // A context that is asked for by name goes before the variable.
  if (server.empty() && asked) server = chosen.server;
  if (server.empty()) server = environment.default_server;
  if (server.empty()) server = chosen.server;
  if (server.empty()) server = kDefaultServer;
  if (output.empty()) {
    for (const Verb& known : Verbs()) {
      if (known.name == verb && known.prints == Prints::kList) output = chosen.output;
    }
  }
  if (output.empty()) output = "table";
  return absl::OkStatus();
}

}  // namespace traind
