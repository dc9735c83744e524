#include "common/spec/key_names.h"

#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>

#include <algorithm>

#include "common/base/field_path.h"
#include "common/spec/field_text.h"

namespace traind {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;

// Names by which users of other tools know a key, and ours.
struct OtherName {
  absl::string_view theirs, ours;
};
constexpr OtherName kOtherNames[] = {
    {"lr", "learning_rate"},
    {"eta", "learning_rate"},
    {"wd", "weight_decay"},
    {"batch_size", "batch"},
    {"bs", "batch"},
    {"num_epochs", "epochs"},
    {"max_epochs", "epochs"},
    {"n_epochs", "epochs"},
    {"n_folds", "folds"},
    {"num_folds", "folds"},
    {"n_splits", "folds"},
    {"label", "target"},
    {"label_column", "target"},
    {"random_state", "seed"},
    {"early_stopping", "patience"},
    {"time_limit", "time"},
    {"timeout", "time"},
    {"max_time", "time"},
    {"layers", "hidden"},
    {"hidden_layers", "hidden"},
    {"hidden_layer_sizes", "hidden"},
    {"hidden_size", "hidden"},
    {"units", "hidden"},
    {"gpus", "slots"},
    {"num_gpus", "slots"},
    {"eval_metric", "metric"},
    {"problem_type", "type"},
    {"amp", "precision"},
    {"dtype", "precision"},
};

// Whether both paths go through a oneof at `prefix` by different members, of which only one can
// stand there.
bool Excludes(const FieldDescriptor& field, const std::string& here, absl::string_view section) {
  const auto* oneof = field.real_containing_oneof();
  if (oneof == nullptr || section == here || absl::StartsWith(section, here + ".")) return false;
  const size_t prefix = here.size() - field.name().size();
  if (section.substr(0, prefix) != absl::string_view(here).substr(0, prefix)) return false;
  const absl::string_view rest = section.substr(std::min(prefix, section.size()));
  const FieldDescriptor* other =
      field.containing_type()->FindFieldByName(std::string(rest.substr(0, rest.find('.'))));
  return other != nullptr && other->real_containing_oneof() == oneof;
}

// Returns the place, `depth` levels below the message type, where a key of this name would be
// right. What excludes `section` is no such place.
std::string FindAtDepth(const Descriptor& type, absl::string_view name, absl::string_view section,
                        const std::string& path, int depth) {
  for (int i = 0; i < type.field_count(); ++i) {
    const FieldDescriptor& field = *type.field(i);
    const std::string here = FieldPath(path, field.name());
    if (Excludes(field, here, section)) continue;
    if (depth == 0 && field.name() == name) return here;
    if (depth == 0 || IsScalarField(field) || field.is_repeated()) continue;
    const std::string below = FindAtDepth(*field.message_type(), name, section, here, depth - 1);
    if (!below.empty()) return below;
  }
  return "";
}

}  // namespace

std::vector<std::string> SplitPath(const Descriptor& root, absl::string_view path) {
  std::vector<std::string> keys;
  const Descriptor* type = &root;
  while (true) {
    const size_t dot = path.find('.');
    keys.emplace_back(path.substr(0, dot));
    if (dot == path.npos) return keys;
    path.remove_prefix(dot + 1);
    const FieldDescriptor* field = type == nullptr ? nullptr : type->FindFieldByName(keys.back());
    if (field != nullptr && field->is_map()) {
      keys.emplace_back(path);
      return keys;
    }
    type = field == nullptr ? nullptr : field->message_type();
  }
}

std::vector<std::string> KeysOf(const Descriptor& type) {
  std::vector<std::string> keys;
  for (int i = 0; i < type.field_count(); ++i) keys.push_back(type.field(i)->name());
  return keys;
}

std::string Expected(const FieldDescriptor& field, bool element) {
  if (field.is_map()) return "a section of names and texts";
  if (field.is_repeated() && !element) return "a list, as in [1, 2]";
  if (!IsScalarField(field)) {
    return absl::StrCat("a section with ", absl::StrJoin(KeysOf(*field.message_type()), ", "));
  }
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_STRING:
      return "a text";
    case FieldDescriptor::CPPTYPE_BOOL:
      return "true or false";
    case FieldDescriptor::CPPTYPE_ENUM:
      return absl::StrJoin(EnumWords(*field.enum_type()), ", ");
    case FieldDescriptor::CPPTYPE_DOUBLE:
    case FieldDescriptor::CPPTYPE_FLOAT:
      return "a number";
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return field.message_type()->name() == "Duration" ? "a duration like 90s"
                                                        : "a time like 2026-12-01T18:00:00Z";
    default:
      return "a whole number";
  }
}

std::string OurName(absl::string_view name) {
  for (const OtherName& other : kOtherNames) {
    if (other.theirs == name) return std::string(other.ours);
  }
  return "";
}

std::string FindElsewhere(const Descriptor& root, absl::string_view name,
                          absl::string_view section) {
  constexpr int kDeepest = 3;
  for (int depth = 0; depth <= kDeepest; ++depth) {
    const std::string found = FindAtDepth(root, name, section, "", depth);
    if (!found.empty()) return found;
  }
  return "";
}

}  // namespace traind
