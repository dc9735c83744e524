#include "common/spec/spec_schema.h"

#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_split.h>
#include <google/protobuf/descriptor.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "common/base/field_path.h"
#include "common/base/status_macros.h"
#include "common/base/suggest.h"
#include "common/spec/field_doc.h"
#include "common/spec/field_text.h"

namespace traind {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using Json = nlohmann::ordered_json;

constexpr char kDurationPattern[] =
    "^( *[0-9]+([.][0-9]+)? *(d|h|m|s|ms))+ *$|^([0-9]+-)?[0-9]+:[0-9]{2}:[0-9]{2}$";
constexpr char kTimePattern[] = "^[+].+$|^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}.*$";

// ---- Explanations -----------------------------------------------------------

std::vector<const FieldDescriptor*> FieldsOf(const Descriptor& type) {
  std::vector<const FieldDescriptor*> fields;
  for (int i = 0; i < type.field_count(); ++i) {
    if (!RulesOf(*type.field(i)).internal()) fields.push_back(type.field(i));
  }
  return fields;
}

bool IsSection(const FieldDescriptor& field) { return !IsScalarField(field) && !field.is_map(); }

// Breaks a text into lines of at most 96 characters.
std::string Wrapped(absl::string_view text, absl::string_view margin) {
  std::string lines, line;
  for (const absl::string_view word : absl::StrSplit(text, ' ', absl::SkipEmpty())) {
    if (!line.empty() && margin.size() + line.size() + 1 + word.size() > 96) {
      absl::StrAppend(&lines, margin, line, "\n");
      line.clear();
    }
    absl::StrAppend(&line, line.empty() ? "" : " ", word);
  }
  return line.empty() ? lines : absl::StrCat(lines, margin, line, "\n");
}

std::string HeadOf(const std::string& path, const FieldDescriptor& field) {
  const FieldDoc doc = DocOf(field);
  return absl::StrCat(path, "  (", doc.type,
                      doc.default_value.empty() ? "" : ", default " + doc.default_value,
                      doc.allowed.empty() ? "" : ", " + doc.allowed, ")\n");
}

void Explain(const std::string& path, const FieldDescriptor& field, bool recursive,
             std::string& text) {
  absl::StrAppend(&text, HeadOf(path, field), Wrapped(DocOf(field).meaning, "    "));
  if (!recursive || !IsSection(field)) return;
  for (const FieldDescriptor* below : FieldsOf(*field.message_type())) {
    Explain(FieldPath(path, below->name()), *below, recursive, text);
  }
}

// ---- JSON Schema ------------------------------------------------------------

Json SchemaOf(const Descriptor& type);

// Lets the value be empty, too, which means the default.
Json OrNull(Json schema) {
  if (schema.contains("enum")) {
    schema["enum"].push_back(nullptr);
  } else if (schema.contains("anyOf")) {
    schema["anyOf"].push_back({{"type", "null"}});
  } else if (schema.contains("type") && schema["type"].is_array()) {
    schema["type"].push_back("null");
  } else if (schema.contains("type")) {
    schema["type"] = {schema["type"], "null"};
  }
  return schema;
}

Json TextSchema(const v1::FieldRules& rules) {
  if (rules.one_of_size() == 0) return {{"type", {"string", "number", "boolean"}}};
  Json words = Json::array();
  for (const std::string& word : rules.one_of()) words.push_back(word);
  if (rules.auto_()) words.push_back("auto");
  return {{"enum", std::move(words)}};
}

Json NumberSchema(const FieldDescriptor& field) {
  const v1::FieldRules& rules = RulesOf(field);
  const bool real = field.cpp_type() == FieldDescriptor::CPPTYPE_DOUBLE ||
                    field.cpp_type() == FieldDescriptor::CPPTYPE_FLOAT;
  Json schema = {{"type", real ? "number" : "integer"}};
  const auto bound = [&](const char* key, double value) {
    if (real) {
      schema[key] = value;
    } else {
      schema[key] = static_cast<int64_t>(value);
    }
  };
  if (rules.has_min()) bound("minimum", rules.min());
  if (rules.has_max()) bound("maximum", rules.max());
  return schema;
}

// Returns the schema of one value, also of an element of a list.
Json ValueSchema(const FieldDescriptor& field) {
  const v1::FieldRules& rules = RulesOf(field);
  Json schema;
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_STRING:
      return TextSchema(rules);
    case FieldDescriptor::CPPTYPE_BOOL:
      return {{"type", "boolean"}};
    case FieldDescriptor::CPPTYPE_ENUM:
      return {{"enum", EnumWords(*field.enum_type())}};
    case FieldDescriptor::CPPTYPE_MESSAGE:
      if (!IsScalarField(field)) return SchemaOf(*field.message_type());
      schema = {{"type", "string"},
                {"pattern",
                 field.message_type()->name() == "Duration" ? kDurationPattern : kTimePattern}};
      break;
    default:
      schema = NumberSchema(field);
  }
  if (!rules.auto_()) return schema;
  return {{"anyOf", {std::move(schema), {{"const", "auto"}}}}};
}

Json ListSchema(Json item) {
  return {{"type", "array"}, {"items", std::move(item)}, {"minItems", 1}};
}

Json FieldSchema(const FieldDescriptor& field) {
  const v1::FieldRules& rules = RulesOf(field);
  Json schema;
  if (field.is_map()) {
    Json value = {{"type", {"string", "number", "boolean"}}};
    if (rules.ranges()) value["type"].push_back("array");
    schema = {{"type", "object"}, {"additionalProperties", std::move(value)}};
  } else if (field.is_repeated()) {
    schema = ListSchema(ValueSchema(field));
  } else if (const FieldDescriptor* const list = ListOf(field)) {
    schema = {{"anyOf", {ValueSchema(field), ListSchema(ValueSchema(*list))}}};
  } else {
    schema = ValueSchema(field);
    // A word may stand for the section, which chooses one below it.
    for (int i = 0; IsSection(field) && i < field.message_type()->field_count(); ++i) {
      const std::string& word = RulesOf(*field.message_type()->field(i)).word();
      if (!word.empty()) schema = {{"anyOf", {std::move(schema), {{"const", word}}}}};
    }
  }
  schema = OrNull(std::move(schema));
  schema["description"] = DocOf(field).meaning;
  const std::string& standing = rules.default_();
  if (DefaultIsValue(field)) {
    const Json value = Json::parse(standing, nullptr, /*allow_exceptions=*/false);
    schema["default"] = value.is_discarded() ? Json(standing) : value;
  }
  return schema;
}

Json Has(const std::string& key) { return {{"required", {key}}}; }

Json SchemaOf(const Descriptor& type) {
  Json properties = Json::object();
  Json rules = Json::array();
  for (const FieldDescriptor* field : FieldsOf(type)) {
    properties[field->name()] = FieldSchema(*field);
    if (!RulesOf(*field).required()) continue;
    Json ways = {Has(field->name())};
    for (const std::string& other : RulesOf(*field).unless()) ways.push_back(Has(other));
    // A Job that goes on from another one has its data.
    if (type.name() == "JobSpec") ways.push_back(Has("from"));
    if (!RulesOf(*field).list().empty()) ways.push_back(Has(RulesOf(*field).list()));
    rules.push_back(ways.size() == 1 ? ways[0] : Json{{"anyOf", std::move(ways)}});
  }
  for (int i = 0; i < type.real_oneof_decl_count(); ++i) {
    const auto& oneof = *type.oneof_decl(i);
    if (oneof.field_count() < 2) continue;
    Json members = Json::array();
    for (int k = 0; k < oneof.field_count(); ++k) members.push_back(Has(oneof.field(k)->name()));
    Json ways = members;
    ways.push_back({{"not", {{"anyOf", std::move(members)}}}});
    rules.push_back({{"oneOf", std::move(ways)}});
  }
  Json schema = {
      {"type", "object"}, {"properties", std::move(properties)}, {"additionalProperties", false}};
  if (!rules.empty()) schema["allOf"] = std::move(rules);
  return schema;
}

void AddPaths(const Descriptor& type, const std::string& path, std::vector<std::string>& paths) {
  for (const FieldDescriptor* field : FieldsOf(type)) {
    const std::string here = FieldPath(path, field->name());
    if (IsSection(*field)) {
      if (!field->is_repeated()) AddPaths(*field->message_type(), here, paths);
    } else {
      paths.push_back(here);
    }
  }
}

}  // namespace

absl::StatusOr<std::string> ExplainField(const google::protobuf::FileDescriptorSet& files,
                                         absl::string_view path, bool recursive) {
  google::protobuf::DescriptorPool pool;
  ASSIGN_OR_RETURN(const Descriptor* type, BuildSpec(files, pool));
  const FieldDescriptor* field = nullptr;
  std::string walked;
  for (const absl::string_view name : absl::StrSplit(path, '.', absl::SkipEmpty())) {
    std::vector<std::string> names;
    if (type != nullptr) {
      for (const FieldDescriptor* known : FieldsOf(*type)) names.push_back(known->name());
    }
    field = type == nullptr ? nullptr : type->FindFieldByName(std::string(name));
    if (field == nullptr || RulesOf(*field).internal()) {
      std::string meant = ClosestWord(name, names);
      if (!meant.empty()) meant = absl::StrCat("; did you mean '", FieldPath(walked, meant), "'?");
      return absl::NotFoundError(absl::StrCat("there is no field '", Printable(name), "' in ",
                                              walked.empty() ? "the spec" : walked, meant));
    }
    walked = FieldPath(walked, name);
    type = IsSection(*field) ? field->message_type() : nullptr;
  }
  std::string text;
  if (field != nullptr) Explain(walked, *field, false, text);
  if (type == nullptr) return text;
  if (field != nullptr) text += "\n";
  for (const FieldDescriptor* below : FieldsOf(*type)) {
    Explain(FieldPath(walked, below->name()), *below, recursive, text);
  }
  return text;
}

absl::StatusOr<std::string> SpecSchema(const google::protobuf::FileDescriptorSet& files) {
  google::protobuf::DescriptorPool pool;
  ASSIGN_OR_RETURN(const Descriptor* const spec, BuildSpec(files, pool));
  Json schema = {{"$schema", "https://json-schema.org/draft/2020-12/schema"},
                 {"title", "traind job spec"}};
  schema.update(SchemaOf(*spec));
  return schema.dump(2) + "\n";
}

absl::StatusOr<std::vector<std::string>> SpecPaths(
    const google::protobuf::FileDescriptorSet& files) {
  google::protobuf::DescriptorPool pool;
  ASSIGN_OR_RETURN(const Descriptor* const spec, BuildSpec(files, pool));
  std::vector<std::string> paths;
  AddPaths(*spec, "", paths);
  return paths;
}

}  // namespace traind
