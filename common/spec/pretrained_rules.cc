#include "common/spec/pretrained_rules.h"

#include <absl/strings/ascii.h>
#include <absl/strings/str_cat.h>

#include <algorithm>
#include <optional>

#include "common/data/weights/name_map.h"
#include "common/spec/yaml_tree.h"

namespace traind {
namespace {

using Add = std::function<void(const std::string&, const std::string&)>;

constexpr int kMostEntries = 10000;
constexpr size_t kLongestEntry = 4096;

bool IsText(const std::string& text) {
  return text.size() <= kLongestEntry &&
         std::none_of(text.begin(), text.end(), [](char c) { return absl::ascii_iscntrl(c); });
}

void CheckMap(const v1::PretrainedSpec& spec, const Add& add) {
  const std::string path = "model.pretrained.map";
  if (spec.map_size() > kMostEntries) {
    return add(path,
               absl::StrCat("has ", spec.map_size(), " entries; ", kMostEntries, " are the most"));
  }
  for (const auto& [parameter, tensors] : spec.map()) {
    if (IsText(parameter) && IsText(tensors)) continue;
    return add(path, absl::StrCat("has an entry of more than ", kLongestEntry,
                                  " bytes, or with a control character"));
  }
  const auto map = NameMap::Parse({spec.map().begin(), spec.map().end()});
  if (!map.ok()) add(path, absl::StrCat("has a mistake at ", map.status().message()));
}

}  // namespace

void CheckPretrained(const v1::ModelSpec& model, const Add& add) {
  if (!model.has_pretrained()) return;
  const v1::PretrainedSpec& spec = model.pretrained();
  if (model.has_script()) {
    add("model.pretrained", "is of no use to model.script, which brings its own weights");
  }
  if (spec.map_size() > 0 && !spec.map_file().empty()) {
    add("model.pretrained.map_file", "and model.pretrained.map are both set; choose one");
  }
  CheckMap(spec, add);
}

absl::StatusOr<std::map<std::string, std::string>> ReadNameMap(absl::string_view text) {
  const auto wrong = [](int line, int column, absl::string_view what) {
    return absl::InvalidArgumentError(absl::StrCat("line ", line, ", column ", column, ": ", what));
  };
  YamlTree tree;
  YamlError error;
  const std::optional<int> root = tree.Parse(text, 0, error);
  if (!root.has_value()) return wrong(error.line, error.column, error.message);
  const YamlNode& map = tree.at(*root);
  if (map.kind != YamlNode::Kind::kMap) {
    return wrong(map.line, map.column, "expected lines of the form PARAMETER: TENSOR");
  }
  std::map<std::string, std::string> entries;
  for (const auto& [key, value] : map.entries) {
    const YamlNode& name = tree.at(key);
    const YamlNode& tensors = tree.at(value);
    if (name.kind != YamlNode::Kind::kScalar || tensors.kind != YamlNode::Kind::kScalar) {
      return wrong(name.line, name.column, "expected PARAMETER: TENSOR, both of them texts");
    }
    if (!entries.emplace(name.text, tensors.text).second) {
      return wrong(name.line, name.column, absl::StrCat("'", name.text, "' is there twice"));
    }
  }
  return entries;
}

}  // namespace traind
