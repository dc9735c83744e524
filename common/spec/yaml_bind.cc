#include "common/spec/yaml_bind.h"

#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "common/base/field_path.h"
#include "common/base/suggest.h"
#include "common/spec/field_text.h"
#include "common/spec/key_names.h"
#include "common/spec/short_forms.h"
#include "proto/job.pb.h"

namespace traind {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using Kind = YamlNode::Kind;

constexpr size_t kMostProblems = 100;

class Binder {
 public:
  Binder(const SpecReadOptions& options, std::vector<SpecProblem>& problems,
         std::map<std::string, std::string>& places)
      : options_(options), problems_(problems), places_(places) {}

  void Bind(absl::string_view text, Message& message) {
    root_type_ = message.GetDescriptor();
    places_[""] = absl::StrCat(options_.file, ":1:1");
    YamlError error;
    if (const std::optional<int> root = tree_.Parse(text, 0, error)) {
      BindRoot(*root, message);
    } else {
      AddProblem(error, "");
    }
    std::stable_sort(found_.begin(), found_.end(), [](const Found& a, const Found& b) {
      return std::tie(a.source, a.line, a.column) < std::tie(b.source, b.line, b.column);
    });
    for (Found& found : found_) problems_.push_back(std::move(found.problem));
  }

 private:
  struct Found {
    int source, line, column;
    SpecProblem problem;
  };
  struct Entry {
    int key, value;
  };

  std::string PlaceOf(const YamlNode& node) const {
    return node.source == 0 ? absl::StrCat(options_.file, ":", node.line, ":", node.column)
                            : options_.overrides[node.source - 1].flag;
  }

  void AddProblem(const YamlError& error, const std::string& path) {
    YamlNode node;
    node.source = error.source;
    node.line = error.line;
    node.column = error.column;
    AddProblem(tree_.Add(node), path, error.message);
  }

  void AddProblem(int node, const std::string& path, std::string message) {
    if (found_.size() >= kMostProblems) return;
    const YamlNode& at = tree_.at(node);
    found_.push_back({at.source, at.line, at.column, {PlaceOf(at), path, std::move(message), ""}});
  }

  // ---- Overrides -------------------------------------------------------------

  int OverrideValue(const SpecOverride& override, int source) {
    YamlNode node;
    node.source = source;
    const std::string& value = override.value;
    if (!value.empty() && absl::StrContains("[{\"'", value.substr(0, 1))) {
      YamlError error;
      if (std::optional<int> parsed = tree_.Parse(value, source, error)) return *parsed;
      AddProblem(error, override.path);
    } else if (!value.empty() && value != "null" && value != "~") {
      node.kind = Kind::kScalar;
      node.text = value;
    }
    return tree_.Add(node);
  }

  // The root of the tree with one override put on top. Maps on the way are
  // copied: an alias elsewhere may share them.
  int Overlay(int root, int source) {
    const SpecOverride& override = options_.overrides[source - 1];
    for (const std::string* text : {&override.path, &override.value}) {
      YamlError error;
      error.source = source;
      if (YamlTree::CheckCharacters(*text, error)) continue;
      error.message = absl::StrCat(Printable(override.path), ": ", error.message);
      AddProblem(error, override.path);
      return root;
    }
    const std::vector<std::string> keys = SplitPath(*root_type_, override.path);
    if (std::find(keys.begin(), keys.end(), "") != keys.end() ||
        keys.size() >= static_cast<size_t>(YamlTree::kMostDepth)) {
      YamlError error;
      error.source = source;
      error.message = absl::StrCat("'", Printable(override.path),
                                   "' is no path of a field; write it like train.epochs");
      AddProblem(error, override.path);
      return root;
    }
    return OverlayAt(WrittenInFull(root, keys), keys, 0, OverrideValue(override, source), source);
  }

  // The root of the tree with the short forms of the section that `keys` leads into written in
  // full: `after: [a]` as `after: {jobs: [a]}`. Those of other fields stay as they are: a field
  // that is written twice is told when it is bound.
  int WrittenInFull(int root, const std::vector<std::string>& keys) {
    if (root_type_ != v1::JobSpec::descriptor() || keys.size() < 2) return root;
    for (const ShortForm& form : kShortForms) {
      if (form.section != keys[0] || (form.key != form.section && form.field != keys[1])) continue;
      root = WrittenInFull(root, form);
    }
    return root;
  }

  int WrittenInFull(int root, const ShortForm& form) {
    if (tree_.at(root).kind != Kind::kMap) return root;
    YamlNode top = tree_.at(root);
    const auto entry = EntryOf(top, form.key);
    if (entry == top.entries.end()) return root;
    const auto [key, value] = *entry;
    const bool section = form.key == form.section;
    if (tree_.at(value).kind == Kind::kNull || (section && tree_.at(value).kind == Kind::kMap)) {
      return root;
    }
    YamlNode name = tree_.at(key);
    name.text = std::string(form.field);
    YamlNode map = tree_.at(key);
    map.kind = Kind::kMap;
    map.entries = {{tree_.Add(name), value}};
    if (section) {
      entry->second = tree_.Add(map);
      return tree_.Add(top);
    }
    top.entries.erase(entry);
    return OverlayAt(tree_.Add(top), {std::string(form.section), std::string(form.field)}, 0, value,
                     name.source);
  }

  std::vector<std::pair<int, int>>::iterator EntryOf(YamlNode& map, absl::string_view key) const {
    return std::find_if(map.entries.begin(), map.entries.end(),
                        [&](const auto& entry) { return tree_.at(entry.first).text == key; });
  }

  int OverlayAt(int node, const std::vector<std::string>& keys, size_t depth, int value,
                int source) {
    if (depth == keys.size()) return value;
    YamlNode copy = tree_.at(node);
    if (copy.kind == Kind::kNull) {
      copy.kind = Kind::kMap;
      copy.source = source;
    }
    if (copy.kind != Kind::kMap) return node;  // wrong in the file: reported there
    YamlNode empty;
    empty.source = source;
    const auto entry = EntryOf(copy, keys[depth]);
    const bool known = entry != copy.entries.end();
    const int child =
        OverlayAt(known ? entry->second : tree_.Add(empty), keys, depth + 1, value, source);
    int key = known ? entry->first : -1;
    if (!known || depth + 1 == keys.size()) {
      // The place of what is set here is the override's.
      YamlNode name;
      name.kind = Kind::kScalar;
      name.source = source;
      name.text = keys[depth];
      key = tree_.Add(name);
    }
    if (known) {
      *entry = {key, child};
    } else {
      copy.entries.emplace_back(key, child);
    }
    return tree_.Add(copy);
  }

  // ---- Messages --------------------------------------------------------------

  void BindRoot(int root, Message& message) {
    for (size_t i = 0; i < options_.overrides.size(); ++i) {
      root = Overlay(root, static_cast<int>(i) + 1);
    }
    if (tree_.at(root).kind == Kind::kMap) {
      BindMessage(root, "", message);
    } else if (tree_.at(root).kind != Kind::kNull) {
      AddProblem(root, "", absl::StrCat(options_.root, " must be made of 'key: value' lines"));
    }
  }

  bool Visit(int node, const std::string& path) {
    if (++visits_ == options_.most_values) {
      AddProblem(node, path,
                 absl::StrCat("more than ", options_.most_values,
                              " values, an aliased one counted each time"));
    }
    return visits_ < options_.most_values;
  }

  // A map's entries with what `<<` merges in: what is written here goes first.
  std::vector<Entry> EntriesOf(int map, const std::string& path, int merge_depth = 0) {
    std::vector<Entry> entries;
    std::set<std::string> seen;
    std::vector<int> merged;
    for (const auto& [key, value] : tree_.at(map).entries) {
      if (!Visit(key, path)) return {};
      const YamlNode& name = tree_.at(key);
      if (name.text == "<<" && !name.quoted) {
        merged.push_back(value);
      } else if (!seen.insert(name.text).second) {
        AddProblem(
            key, path,
            absl::StrCat("duplicate key '", Printable(name.text), "' in ", SectionName(path)));
      } else {
        entries.push_back({key, value});
      }
    }
    if (!merged.empty() && merge_depth == YamlTree::kMostDepth) {
      AddProblem(map, FieldPath(path, "<<"),
                 absl::StrCat("'<<' nested deeper than ", YamlTree::kMostDepth));
      return entries;
    }
    for (int source : merged) {
      std::vector<int> maps = {source};
      if (tree_.at(source).kind == Kind::kList) maps = tree_.at(source).items;
      for (int each : maps) {
        if (!Visit(each, path)) return {};
        if (tree_.at(each).kind != Kind::kMap) {
          AddProblem(each, FieldPath(path, "<<"), "'<<' merges sections, or a list of them");
          continue;
        }
        for (const Entry& entry : EntriesOf(each, path, merge_depth + 1)) {
          if (seen.insert(tree_.at(entry.key).text).second) entries.push_back(entry);
        }
      }
    }
    return entries;
  }

  std::string SectionName(const std::string& path) const {
    return path.empty() ? options_.root : path;
  }

  void BindMessage(int map, const std::string& path, Message& message) {
    const Descriptor& type = *message.GetDescriptor();
    std::map<std::string, std::string> chosen;  // oneof -> member
    for (const Entry& entry : EntriesOf(map, path)) {
      const std::string name = tree_.at(entry.key).text;
      const FieldDescriptor* field = type.FindFieldByName(name);
      if (field == nullptr || !IsSection(entry.value)) {
        if (BindShort(entry, path, name, message)) continue;
      }
      if (field == nullptr) {
        ReportUnknown(entry.key, path, name, type);
        continue;
      }
      const std::string field_path = FieldPath(path, name);
      if (!NoteOnce(entry.key, field_path)) continue;
      if (tree_.at(entry.value).kind == Kind::kNull) continue;
      if (const auto* oneof = field->real_containing_oneof()) {
        const auto [other, first] = chosen.emplace(oneof->name(), name);
        if (!first) {
          AddProblem(entry.key, field_path,
                     absl::StrCat(SectionName(path), " has both '", other->second, "' and '", name,
                                  "'; choose one ", oneof->name()));
          continue;
        }
      }
      BindField(entry.value, field_path, *field, message);
    }
  }

  bool IsSection(int node) const {
    return tree_.at(node).kind == Kind::kMap || tree_.at(node).kind == Kind::kNull;
  }

  // Notes where a field is written. False: its short form stands at the top, too.
  bool NoteOnce(int key, const std::string& path) {
    const std::string place = PlaceOf(tree_.at(key));
    if (const auto other = shorts_.find(path); other != shorts_.end()) {
      AddProblem(key, path, absl::StrCat(path, " is written at ", other->second, ", too"));
      return false;
    }
    places_[path] = place;
    return true;
  }

  // Binds a key at the top of a spec that stands for a field of a section. False: it is none.
  bool BindShort(const Entry& entry, const std::string& path, const std::string& key,
                 Message& message) {
    if (!path.empty() || message.GetDescriptor() != v1::JobSpec::descriptor()) return false;
    for (const ShortForm& form : kShortForms) {
      if (form.key != key) continue;
      const std::string section(form.section);
      Message& below = *message.GetReflection()->MutableMessage(
          &message, message.GetDescriptor()->FindFieldByName(section));
      const FieldDescriptor& field =
          *below.GetDescriptor()->FindFieldByName(std::string(form.field));
      const std::string long_path = FieldPath(section, form.field);
      if (places_.count(long_path) > 0) {
        AddProblem(entry.key, long_path,
                   absl::StrCat(long_path, " is written at ", places_[long_path], ", too"));
        return true;
      }
      shorts_[long_path] = places_[long_path] = PlaceOf(tree_.at(entry.key));
      places_.emplace(section, places_[long_path]);
      if (tree_.at(entry.value).kind != Kind::kNull)
        BindField(entry.value, long_path, field, below);
      return true;
    }
    return false;
  }

  std::string Elsewhere(const std::string& name, const std::string& ours,
                        const std::string& section) const {
    const std::string found = FindElsewhere(*root_type_, name, section);
    return found.empty() && !ours.empty() ? FindElsewhere(*root_type_, ours, section) : found;
  }

  void ReportUnknown(int key, const std::string& path, const std::string& name,
                     const Descriptor& type) {
    if (found_.size() >= kMostProblems) return;
    const std::vector<std::string> keys = KeysOf(type);
    const std::string ours = OurName(name);
    std::string meant = type.FindFieldByName(ours) != nullptr ? ours : ClosestWord(name, keys);
    std::string hint;
    if (!meant.empty()) {
      hint = absl::StrCat("; did you mean '", meant, "'?");
      meant = FieldPath(path, meant);
    } else if (meant = Elsewhere(name, ours, path); !meant.empty()) {
      hint = absl::StrCat("; did you mean '", meant, "'?");
    } else {
      hint = absl::StrCat("; the keys here are ", absl::StrJoin(keys, ", "));
    }
    AddProblem(key, FieldPath(path, Printable(name)),
               absl::StrCat("unknown key '", Printable(name), "' in ", SectionName(path), hint));
    found_.back().problem.meant = std::move(meant);
  }

  void ReportKind(int node, const std::string& path, const FieldDescriptor& field, bool element) {
    const YamlNode& at = tree_.at(node);
    const std::string found = at.kind == Kind::kList   ? "a list"
                              : at.kind == Kind::kMap  ? "a section"
                              : at.kind == Kind::kNull ? "empty"
                                                       : "'" + Printable(at.text) + "'";
    AddProblem(node, path,
               absl::StrCat(path, " is ", found, "; ", WhatToWrite(at, path, field, element)));
  }

  // Says how to write a value that is of the wrong kind.
  std::string WhatToWrite(const YamlNode& at, const std::string& path, const FieldDescriptor& field,
                          bool element) const {
    const bool list = field.is_repeated() && !field.is_map() && !element;
    const std::string text = Printable(at.text);
    if (at.kind == Kind::kScalar && list) {
      return absl::StrCat("expected a list, as in [", text, "]");
    }
    if (at.kind == Kind::kScalar && !field.is_repeated() && !IsScalarField(field)) {
      const std::string key = KeyForValue(*field.message_type(), at);
      if (!key.empty()) return absl::StrCat("write ", path, ": {", key, ": ", text, "}");
    }
    return absl::StrCat("expected ", Expected(field, element));
  }

  // The first key of a section whose value such a text can be; free texts are none.
  std::string KeyForValue(const Descriptor& type, const YamlNode& at) const {
    const std::unique_ptr<Message> scratch(
        google::protobuf::MessageFactory::generated_factory()->GetPrototype(&type)->New());
    for (int i = 0; i < type.field_count(); ++i) {
      const FieldDescriptor& below = *type.field(i);
      const bool free_text =
          below.cpp_type() == FieldDescriptor::CPPTYPE_STRING && RulesOf(below).one_of().empty();
      if (!IsScalarField(below) || below.is_repeated() || free_text) continue;
      if (SetFieldFromText(below, ScalarOf(at), *scratch).ok()) return below.name();
    }
    return "";
  }

  void BindField(int node, const std::string& path, const FieldDescriptor& field,
                 Message& message) {
    if (!Visit(node, path)) return;
    if (field.is_map()) return BindMap(node, path, field, message);
    if (field.is_repeated()) return BindList(node, path, field, message);
    if (tree_.at(node).kind == Kind::kList && ListOf(field) != nullptr) {
      return BindList(node, path, *ListOf(field), message);
    }
    if (IsScalarField(field)) return BindScalar(node, path, field, false, message);
    if (BindWord(node, path, field, message) || BindWords(node, path, field, message)) return;
    if (tree_.at(node).kind != Kind::kMap) return ReportKind(node, path, field, false);
    BindMessage(node, path, *message.GetReflection()->MutableMessage(&message, &field));
  }

  // A word that stands for a section and chooses one below it: `model: auto` by a rule, and
  // `model: lightgbm` because only one such section can be there.
  bool BindWord(int node, const std::string& path, const FieldDescriptor& field, Message& message) {
    if (tree_.at(node).kind != Kind::kScalar) return false;
    const std::string& word = tree_.at(node).text;
    const Descriptor& type = *field.message_type();
    for (int i = 0; i < type.field_count(); ++i) {
      const FieldDescriptor& below = *type.field(i);
      const bool chooses = below.real_containing_oneof() != nullptr && !IsScalarField(below);
      const bool by_rule = !RulesOf(below).word().empty() && RulesOf(below).word() == word;
      if (!by_rule && !(chooses && below.name() == word)) continue;
      Message& section = *message.GetReflection()->MutableMessage(&message, &field);
      section.GetReflection()->MutableMessage(&section, &below);
      places_[FieldPath(path, below.name())] = PlaceOf(tree_.at(node));
      return true;
    }
    return false;
  }

  // A list of words for a section that a word can stand for: `model: [lightgbm, mlp]` names what
  // `model: auto` may choose from.
  bool BindWords(int node, const std::string& path, const FieldDescriptor& field,
                 Message& message) {
    if (tree_.at(node).kind != Kind::kList) return false;
    const Descriptor& type = *field.message_type();
    for (int i = 0; i < type.field_count(); ++i) {
      const FieldDescriptor& below = *type.field(i);
      if (RulesOf(below).word().empty()) continue;
      const Descriptor& automatic = *below.message_type();
      for (int k = 0; k < automatic.field_count(); ++k) {
        const FieldDescriptor& list = *automatic.field(k);
        if (!list.is_repeated() || RulesOf(list).one_of().empty()) continue;
        Message& section = *message.GetReflection()->MutableMessage(&message, &field);
        BindList(node, absl::StrCat(path, ".", below.name(), ".", list.name()), list,
                 *section.GetReflection()->MutableMessage(&section, &below));
        return true;
      }
    }
    return false;
  }

  void BindScalar(int node, const std::string& path, const FieldDescriptor& field, bool element,
                  Message& message) {
    const YamlNode& at = tree_.at(node);
    if (at.kind != Kind::kScalar) return ReportKind(node, path, field, element);
    const absl::Status status = SetFieldFromText(field, ScalarOf(at), message);
    if (!status.ok()) AddProblem(node, path, absl::StrCat(path, " ", status.message()));
  }

  ScalarText ScalarOf(const YamlNode& node) const {
    ScalarText scalar;
    scalar.text = node.text;
    scalar.quoted = node.quoted;
    scalar.base_dir = options_.base_dir;
    scalar.now = options_.now;
    return scalar;
  }

  void BindList(int node, const std::string& path, const FieldDescriptor& field, Message& message) {
    if (tree_.at(node).kind != Kind::kList) return ReportKind(node, path, field, false);
    const std::vector<int> items = tree_.at(node).items;
    if (items.empty()) {
      // On the wire an empty list is an unset field, and gets the default.
      return AddProblem(node, path,
                        absl::StrCat(path, " is an empty list; leave the key out for its default"));
    }
    for (size_t i = 0; i < items.size(); ++i) {
      const std::string item_path = absl::StrCat(path, "[", i, "]");
      if (!Visit(items[i], path)) return;
      places_[item_path] = PlaceOf(tree_.at(items[i]));
      if (IsScalarField(field)) {
        BindScalar(items[i], item_path, field, true, message);
      } else if (tree_.at(items[i]).kind != Kind::kMap) {
        ReportKind(items[i], item_path, field, true);
      } else {
        BindMessage(items[i], item_path, *message.GetReflection()->AddMessage(&message, &field));
      }
    }
  }

  // A list of values as a range: "choice(a, [1, 2])".
  std::string ChoiceText(const YamlNode& list) const {
    const auto text = [this](int item) { return tree_.at(item).text; };
    std::vector<std::string> items;
    for (const int item : list.items) {
      const YamlNode& node = tree_.at(item);
      std::vector<std::string> inner;
      for (const int below : node.items) inner.push_back(text(below));
      items.push_back(node.kind == Kind::kList ? absl::StrCat("[", absl::StrJoin(inner, ", "), "]")
                                               : node.text);
    }
    return absl::StrCat("choice(", absl::StrJoin(items, ", "), ")");
  }

  // map<string, scalar>
  void BindMap(int node, const std::string& path, const FieldDescriptor& field, Message& message) {
    if (tree_.at(node).kind != Kind::kMap) return ReportKind(node, path, field, false);
    if (tree_.at(node).entries.empty() && RulesOf(field).ranges()) {
      return AddProblem(node, path,
                        absl::StrCat(path, " is empty; leave the key out for the usual ranges"));
    }
    const FieldDescriptor& key_field = *field.message_type()->map_key();
    const FieldDescriptor& value_field = *field.message_type()->map_value();
    for (const Entry& entry : EntriesOf(node, path)) {
      const std::string name = tree_.at(entry.key).text;
      const std::string item_path = absl::StrCat(path, ".", Printable(name));
      places_[item_path] = PlaceOf(tree_.at(entry.key));
      const YamlNode& value = tree_.at(entry.value);
      if (value.kind == Kind::kList && RulesOf(field).ranges()) {
        Message* item = message.GetReflection()->AddMessage(&message, &field);
        item->GetReflection()->SetString(item, &key_field, name);
        item->GetReflection()->SetString(item, &value_field, ChoiceText(value));
        continue;
      }
      if (value.kind != Kind::kScalar) {
        ReportKind(entry.value, item_path, value_field, true);
        continue;
      }
      Message* item = message.GetReflection()->AddMessage(&message, &field);
      item->GetReflection()->SetString(item, &key_field, name);
      BindScalar(entry.value, item_path, value_field, true, *item);
    }
  }

  const SpecReadOptions& options_;
  std::vector<SpecProblem>& problems_;
  std::map<std::string, std::string>& places_;
  std::map<std::string, std::string> shorts_;  // where short forms stand, by what they stand for
  const Descriptor* root_type_ = nullptr;
  YamlTree tree_;
  std::vector<Found> found_;
  int visits_ = 0;
};

}  // namespace

void BindYaml(absl::string_view text, const SpecReadOptions& options, Message& message,
              std::vector<SpecProblem>& problems, std::map<std::string, std::string>& places) {
  Binder(options, problems, places).Bind(text, message);
}

}  // namespace traind
