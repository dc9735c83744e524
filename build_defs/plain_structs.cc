// Makes plain C++ structs of the messages of a .proto file: a header that needs only the standard
// library and Abseil's time, and tables for the one reader and writer (common/plain).
//
//     plain_structs DESCRIPTORS PROTO ENUMS [HEADER SOURCE]
//
// DESCRIPTORS: what `protoc --include_imports` writes. ENUMS: a header with the enums and their
// names, which needs nothing; without HEADER and SOURCE it is all that is made. Comments stay in
// the .proto file, so that a new one compiles nothing anew.
//
// STATE_UNSPECIFIED becomes kNone, named NONE.
//
// int32 and int64 become int64_t, uint32 and uint64 uint64_t, float and double double. A field has
// the default of its rules. A member of a oneof becomes a std::optional; so does a field without a
// default that is `optional`, a Duration or a Timestamp.
#include <absl/strings/ascii.h>
#include <absl/strings/match.h>
#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>
#include <absl/strings/str_join.h>
#include <absl/strings/str_replace.h>
#include <absl/strings/str_split.h>
#include <absl/strings/strip.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor.pb.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <iostream>
#include <set>
#include <string>
#include <vector>

#include "proto/field_rules.pb.h"

namespace traind {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::EnumDescriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::FileDescriptor;

// Ends the program: the .proto file has what plain structs have no form for.
[[noreturn]] void Refuse(const std::string& name, absl::string_view why) {
  std::cerr << name << ": " << why << "\n";
  exit(1);
}

const v1::FieldRules& RulesOf(const FieldDescriptor& field) {
  return field.options().GetExtension(v1::rules);
}

bool IsOf(const FieldDescriptor& field, absl::string_view type) {
  return field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE &&
         field.message_type()->full_name() == type;
}
bool IsDuration(const FieldDescriptor& field) { return IsOf(field, "google.protobuf.Duration"); }
bool IsTime(const FieldDescriptor& field) { return IsOf(field, "google.protobuf.Timestamp"); }
bool IsMessage(const FieldDescriptor& field) {
  return field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE && !field.is_map() &&
         !IsDuration(field) && !IsTime(field);
}

// A default that is a value. `auto` is zero; a sentence ("a, or b") is for readers alone.
std::string DefaultOf(const FieldDescriptor& field) {
  const std::string& text = RulesOf(field).default_();
  return text == "auto" || absl::StrContains(text, ", or ") ? "" : text;
}

bool IsOptional(const FieldDescriptor& field) {
  if (field.is_repeated()) return false;
  const bool tells = field.has_optional_keyword() || IsDuration(field) || IsTime(field);
  return field.real_containing_oneof() != nullptr || (tells && DefaultOf(field).empty());
}

// Nested types are named after their parents: StartTask.Kind is StartTaskKind.
template <class D>
std::string NameOf(const D& type) {
  return type.containing_type() == nullptr ? type.name()
                                           : NameOf(*type.containing_type()) + type.name();
}

std::string PlainHeader(const FileDescriptor& file, absl::string_view ending = ".h") {
  return absl::StrReplaceAll(file.name(), {{"proto/", "proto/plain/"}, {".proto", ending}});
}
std::string EnumsHeader(const FileDescriptor& file) { return PlainHeader(file, "_enums.h"); }

// KIND_PREPARE of Kind -> PREPARE
std::string ShortName(const EnumDescriptor& type, absl::string_view value) {
  std::string prefix;
  for (const char c : type.name()) {
    if (absl::ascii_isupper(c) && !prefix.empty()) prefix += '_';
    prefix += absl::ascii_toupper(c);
  }
  absl::ConsumePrefix(&value, prefix + "_");
  return value == "UNSPECIFIED" ? "NONE" : std::string(value);
}

// KIND_PREPARE of Kind -> kPrepare
std::string Constant(const EnumDescriptor& type, absl::string_view value) {
  std::string name = "k";
  for (const absl::string_view word : absl::StrSplit(ShortName(type, value), '_')) {
    absl::StrAppend(&name, word.substr(0, 1), absl::AsciiStrToLower(word.substr(1)));
  }
  return name;
}

// ---- Types and defaults ---------------------------------------------------------

std::string ScalarType(const FieldDescriptor& field) {
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
    case FieldDescriptor::CPPTYPE_INT64:
      return "int64_t";
    case FieldDescriptor::CPPTYPE_UINT32:
    case FieldDescriptor::CPPTYPE_UINT64:
      return "uint64_t";
    case FieldDescriptor::CPPTYPE_FLOAT:
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return "double";
    case FieldDescriptor::CPPTYPE_BOOL:
      if (field.is_repeated()) Refuse(field.full_name(), "a list of bools has no plain form");
      return "bool";
    case FieldDescriptor::CPPTYPE_STRING:
      if (field.type() == FieldDescriptor::TYPE_BYTES) {
        Refuse(field.full_name(), "bytes have no plain form");
      }
      return "std::string";
    case FieldDescriptor::CPPTYPE_ENUM:
      return NameOf(*field.enum_type());
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return IsDuration(field) ? "absl::Duration"
             : IsTime(field)   ? "absl::Time"
                               : NameOf(*field.message_type());
  }
  return "";
}

bool IsNumberMap(const FieldDescriptor& field) {
  const FieldDescriptor& value = *field.message_type()->map_value();
  if (field.message_type()->map_key()->cpp_type() != FieldDescriptor::CPPTYPE_STRING ||
      (value.cpp_type() != FieldDescriptor::CPPTYPE_STRING &&
       value.cpp_type() != FieldDescriptor::CPPTYPE_DOUBLE)) {
    Refuse(field.full_name(), "only maps from texts to texts or doubles have a plain form");
  }
  return value.cpp_type() == FieldDescriptor::CPPTYPE_DOUBLE;
}

std::string FieldType(const FieldDescriptor& field) {
  if (field.is_map()) {
    return IsNumberMap(field) ? "std::map<std::string, double>"
                              : "std::map<std::string, std::string>";
  }
  const std::string type = ScalarType(field);
  return field.is_repeated() ? "std::vector<" + type + ">"
         : IsOptional(field) ? "std::optional<" + type + ">"
                             : type;
}

std::string Quoted(absl::string_view text) {
  return absl::StrCat("\"", absl::StrReplaceAll(text, {{"\\", "\\\\"}, {"\"", "\\\""}}), "\"");
}

std::string Literal(const FieldDescriptor& field, absl::string_view text) {
  double number = 0;
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_STRING: {
      const auto& words = RulesOf(field).one_of();
      if (!words.empty() && std::find(words.begin(), words.end(), text) == words.end()) {
        Refuse(field.full_name(), "its default is not one of its words");
      }
      return Quoted(text);
    }
    case FieldDescriptor::CPPTYPE_BOOL:
      if (text != "true" && text != "false") Refuse(field.full_name(), "its default is no bool");
      return std::string(text);
    case FieldDescriptor::CPPTYPE_MESSAGE:
      if (!IsDuration(field) || !absl::ConsumeSuffix(&text, "s") ||
          !absl::SimpleAtod(text, &number)) {
        Refuse(field.full_name(), "its default is no duration in seconds");
      }
      return absl::StrCat("absl::Milliseconds(", static_cast<int64_t>(number * 1000 + 0.5), ")");
    default:
      if (!absl::SimpleAtod(text, &number)) Refuse(field.full_name(), "its default is no number");
      return std::string(text);
  }
}

// Returns the text behind the name in the struct's definition.
std::string Initializer(const FieldDescriptor& field) {
  if (IsOptional(field) || field.is_map()) return "";
  const std::string default_text = DefaultOf(field);
  absl::string_view text = default_text;
  if (field.is_repeated()) {
    if (text.empty()) return "";
    absl::ConsumePrefix(&text, "[");
    absl::ConsumeSuffix(&text, "]");
    std::vector<std::string> items;
    for (const absl::string_view item : absl::StrSplit(text, ", ")) {
      items.push_back(Literal(field, item));
    }
    return absl::StrCat("{", absl::StrJoin(items, ", "), "}");
  }
  if (!text.empty()) return " = " + Literal(field, text);
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_STRING:
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return "";
    case FieldDescriptor::CPPTYPE_BOOL:
      return " = false";
    case FieldDescriptor::CPPTYPE_ENUM:
      return "{}";
    default:
      return " = 0";
  }
}

// ---- The header -----------------------------------------------------------------

std::string EnumText(const EnumDescriptor& type) {
  std::string text = absl::StrCat("\nenum class ", NameOf(type), " : int {\n");
  std::vector<std::string> names;
  for (int i = 0; i < type.value_count(); ++i) {
    const auto& value = *type.value(i);
    if (value.number() != i) Refuse(value.full_name(), "its number is not its place, from 0");
    absl::StrAppend(&text, "  ", Constant(type, value.name()), " = ", i, ",\n");
    names.push_back(Quoted(ShortName(type, value.name())));
  }
  return absl::StrCat(text, "};\ninline constexpr const char* k", NameOf(type), "Names[] = {\n    ",
                      absl::StrJoin(names, ",\n    "), "};\n");
}

std::string StructText(const Descriptor& type) {
  std::string text = absl::StrCat("\nstruct ", NameOf(type), " {\n");
  for (int i = 0; i < type.field_count(); ++i) {
    const FieldDescriptor& field = *type.field(i);
    absl::StrAppend(&text, "  ", FieldType(field), " ", field.name(), Initializer(field), ";\n");
  }
  return text + "\n  static const MessageInfo& Info();\n};\n";
}

// All messages, those that others hold first.
std::vector<const Descriptor*> MessagesOf(const FileDescriptor& file) {
  std::vector<const Descriptor*> order;
  std::set<const Descriptor*> seen;
  const std::function<void(const Descriptor&)> visit = [&](const Descriptor& type) {
    if (type.file() != &file || type.options().map_entry() || !seen.insert(&type).second) return;
    for (int i = 0; i < type.field_count(); ++i) {
      if (IsMessage(*type.field(i))) visit(*type.field(i)->message_type());
    }
    order.push_back(&type);
    for (int i = 0; i < type.nested_type_count(); ++i) visit(*type.nested_type(i));
  };
  for (int i = 0; i < file.message_type_count(); ++i) visit(*file.message_type(i));
  return order;
}

std::vector<const EnumDescriptor*> EnumsOf(const FileDescriptor& file,
                                           const std::vector<const Descriptor*>& messages) {
  std::vector<const EnumDescriptor*> enums;
  for (int i = 0; i < file.enum_type_count(); ++i) enums.push_back(file.enum_type(i));
  for (const Descriptor* type : messages) {
    for (int i = 0; i < type->enum_type_count(); ++i) enums.push_back(type->enum_type(i));
  }
  return enums;
}

// The other .proto files that have plain structs.
std::vector<const FileDescriptor*> ImportsOf(const FileDescriptor& file) {
  std::vector<const FileDescriptor*> imports;
  for (int i = 0; i < file.dependency_count(); ++i) {
    const FileDescriptor* const other = file.dependency(i);
    if (absl::StartsWith(other->name(), "google/") || other->message_type_count() == 0 ||
        other->extension_count() > 0) {
      continue;
    }
    imports.push_back(other);
  }
  return imports;
}

std::string Enums(const FileDescriptor& file) {
  std::string text =
      absl::StrCat("// The enums of ", file.name(),
                   ", made by build_defs/plain_structs.cc: k<Enum>Names[i] is the name of "
                   "the value i.\n#pragma once\n\nnamespace traind::plain {\n");
  for (const EnumDescriptor* type : EnumsOf(file, MessagesOf(file))) text += EnumText(*type);
  return text + "\n}  // namespace traind::plain\n";
}

std::string Header(const FileDescriptor& file) {
  std::string text = absl::StrCat(
      "// The plain structs of ", file.name(), ", made by build_defs/plain_structs.cc.\n",
      "#pragma once\n\n#include <absl/time/time.h>\n\n",
      "#include <cstdint>\n#include <map>\n#include <optional>\n#include <string>\n",
      "#include <vector>\n\n#include \"", EnumsHeader(file), "\"\n");
  for (const FileDescriptor* other : ImportsOf(file)) {
    absl::StrAppend(&text, "\n#include \"", PlainHeader(*other), "\"\n");
  }
  absl::StrAppend(&text, "\nnamespace traind::plain {\n\nstruct MessageInfo;\n");
  for (const Descriptor* type : MessagesOf(file)) text += StructText(*type);
  return text + "\n}  // namespace traind::plain\n";
}

// ---- The tables -----------------------------------------------------------------

std::string KindText(const FieldDescriptor& field) {
  if (field.is_map()) return IsNumberMap(field) ? "kNumberMap" : "kTextMap";
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
    case FieldDescriptor::CPPTYPE_INT64:
      return "kInteger";
    case FieldDescriptor::CPPTYPE_UINT32:
    case FieldDescriptor::CPPTYPE_UINT64:
      return "kUnsigned";
    case FieldDescriptor::CPPTYPE_FLOAT:
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return "kReal";
    case FieldDescriptor::CPPTYPE_BOOL:
      return "kBool";
    case FieldDescriptor::CPPTYPE_STRING:
      return "kText";
    case FieldDescriptor::CPPTYPE_ENUM:
      return "kEnum";
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return IsDuration(field) ? "kDuration" : IsTime(field) ? "kTime" : "kMessage";
  }
  return "";
}

// Returns the bounds by the rules, else by the type. Bounds beyond a double's whole numbers are
// none.
std::string Bound(const FieldDescriptor& field, bool lower) {
  const v1::FieldRules& rules = RulesOf(field);
  if (lower ? rules.has_min() : rules.has_max()) {
    return absl::StrFormat("%.17g", lower ? rules.min() : rules.max());
  }
  if (field.cpp_type() == FieldDescriptor::CPPTYPE_INT32)
    return lower ? "-2147483648." : "2147483647.";
  if (field.cpp_type() == FieldDescriptor::CPPTYPE_UINT32) return lower ? "0" : "4294967295.";
  return lower ? "-HUGE_VAL" : "HUGE_VAL";
}

template <class Words>
std::string Array(const std::string& type, const std::string& name, const Words& words,
                  std::string* text) {
  if (words.empty()) return "nullptr";
  absl::StrAppend(text, "constexpr ", type, " ", name, "[] = {");
  for (const auto& word : words) absl::StrAppend(text, word, ", ");
  absl::StrAppend(text, type == "EnumValue" ? "{nullptr, 0}" : "nullptr", "};\n");
  return name;
}

std::string WordArray(const std::string& name,
                      const google::protobuf::RepeatedPtrField<std::string>& words,
                      std::string* text) {
  std::vector<std::string> quoted;
  for (const std::string& word : words) quoted.push_back(Quoted(word));
  return Array("const char*", name, quoted, text);
}

std::string QuotedOrNull(absl::string_view text) { return text.empty() ? "nullptr" : Quoted(text); }

// One row of a table; arrays that it points to are added to `before`.
std::string FieldRow(const FieldDescriptor& field, std::string* before) {
  const auto flag = [](bool set) { return set ? "true" : "false"; };
  const v1::FieldRules& rules = RulesOf(field);
  const std::string owner = NameOf(*field.containing_type());
  const std::string stem = absl::StrCat("k", owner, "_", field.name());
  const std::string words = WordArray(stem + "_words", rules.one_of(), before);
  const std::string unless = WordArray(stem + "_unless", rules.unless(), before);
  const auto* oneof = field.real_containing_oneof();
  return absl::StrCat(
      "    {", Quoted(field.name()), ", Kind::", KindText(field), ", ",
      flag(field.is_repeated() && !field.is_map()), ", ", flag(field.has_presence()), ", ",
      flag(!DefaultOf(field).empty()), ", ", flag(rules.required()), ", ", flag(rules.auto_()),
      ", ", Bound(field, true), ", ", Bound(field, false), ", ", words, ", ",
      field.enum_type() == nullptr ? "nullptr" : absl::StrCat("k", NameOf(*field.enum_type())),
      ", ",
      IsMessage(field) ? absl::StrCat("&", NameOf(*field.message_type()), "::Info()") : "nullptr",
      ",\n     ", QuotedOrNull(oneof == nullptr ? "" : oneof->name()), ", ", unless, ", ",
      QuotedOrNull(rules.multiple_of()), ", ", QuotedOrNull(rules.needs()), ", ",
      flag(rules.sequence()), ", ", flag(rules.trees()),
      ",\n     [](void* m, Reach how, size_t i) {\n", "       return ReachField(static_cast<",
      owner, "*>(m)->", field.name(), ", how, i);\n", "     }},\n");
}

std::string TableText(const Descriptor& type) {
  std::string before, rows;
  for (int i = 0; i < type.field_count(); ++i) rows += FieldRow(*type.field(i), &before);
  const std::string name = NameOf(type);
  const std::string fields = type.field_count() == 0 ? "nullptr" : "kFields";
  const std::string table =
      type.field_count() == 0
          ? ""
          : absl::StrCat("  static const FieldInfo kFields[] = {\n", rows, "  };\n");
  return absl::StrCat("\n", before, "const MessageInfo& ", name, "::Info() {\n", table,
                      "  static const MessageInfo info = {", Quoted(name), ", ", fields, ", ",
                      type.field_count(), "};\n  return info;\n}\n");
}

// Enums of this file and of those that its fields come from.
std::string EnumTables(const std::vector<const Descriptor*>& messages) {
  std::set<std::string> done;
  std::string text;
  for (const Descriptor* message : messages) {
    for (int i = 0; i < message->field_count(); ++i) {
      const EnumDescriptor* const type = message->field(i)->enum_type();
      if (type == nullptr || !done.insert(NameOf(*type)).second) continue;
      std::vector<std::string> values;
      for (int k = 0; k < type->value_count(); ++k) {
        values.push_back(
            absl::StrCat("{", Quoted(type->value(k)->name()), ", ", type->value(k)->number(), "}"));
      }
      text += "\n";
      Array("EnumValue", "k" + NameOf(*type), values, &text);
    }
  }
  return text;
}

std::string Source(const FileDescriptor& file) {
  const std::vector<const Descriptor*> messages = MessagesOf(file);
  std::string text = absl::StrCat(
      "// The tables of ", file.name(), ", made by build_defs/plain_structs.cc.\n#include \"",
      PlainHeader(file), "\"\n\n#include <cmath>\n\n",
      "#include \"common/plain/message_info.h\"\n\n", "namespace traind::plain {\nnamespace {\n",
      EnumTables(messages), "\n}  // namespace\n");
  for (const Descriptor* type : messages) text += TableText(*type);
  return text + "\n}  // namespace traind::plain\n";
}

int Run(int argc, char** argv) {
  std::ifstream in(argv[1], std::ios::binary);
  google::protobuf::FileDescriptorSet files;
  if (!in || !files.ParseFromIstream(&in)) Refuse(argv[1], "no descriptor set");
  google::protobuf::DescriptorPool pool;
  for (const auto& file : files.file()) {
    if (pool.BuildFile(file) == nullptr) Refuse(file.name(), "cannot be built");
  }
  const FileDescriptor* const file = pool.FindFileByName(argv[2]);
  if (file == nullptr) Refuse(argv[2], "is not in the descriptor set");
  const auto write = [](const char* path, const std::string& text) {
    std::ofstream out(path);
    return (out << text).flush().good();
  };
  bool done = write(argv[3], Enums(*file));
  if (argc > 4) done = done && write(argv[4], Header(*file)) && write(argv[5], Source(*file));
  return done ? 0 : 1;
}

}  // namespace
}  // namespace traind

int main(int argc, char** argv) {
  if (argc != 4 && argc != 6) {
    std::cerr << "usage: plain_structs DESCRIPTORS PROTO ENUMS [HEADER SOURCE]\n";
    return 2;
  }
  return traind::Run(argc, argv);
}
