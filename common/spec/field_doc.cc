#include "common/spec/field_doc.h"

#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>
#include <absl/strings/str_join.h>
#include <absl/strings/str_split.h>

#include <vector>

#include "common/spec/field_text.h"

namespace traind {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;

std::string TypeWord(const FieldDescriptor& field) {
  if (field.is_map()) return "names and texts";
  std::string word;
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_STRING:
      word = RulesOf(field).path() ? "path" : RulesOf(field).one_of_size() > 0 ? "word" : "text";
      if (const FieldDescriptor* const list = ListOf(field)) {
        return absl::StrCat(word, ", or a ", TypeWord(*list));
      }
      break;
    case FieldDescriptor::CPPTYPE_DOUBLE:
    case FieldDescriptor::CPPTYPE_FLOAT:
      word = "number";
      break;
    case FieldDescriptor::CPPTYPE_BOOL:
      word = "true or false";
      break;
    case FieldDescriptor::CPPTYPE_MESSAGE:
      word = field.message_type()->name() == "Duration"    ? "duration"
             : field.message_type()->name() == "Timestamp" ? "time"
                                                           : "section";
      break;
    default:
      word = "whole number";
  }
  return field.is_repeated() ? "list of " + word + "s" : word;
}

std::string Bound(const FieldDescriptor& field, double value) {
  const bool duration =
      field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE && IsScalarField(field);
  return absl::StrFormat("%.12g", value) + (duration ? "s" : "");
}

// "1 to 100", "one of a, b", "required".
std::string Allowed(const FieldDescriptor& field) {
  const v1::FieldRules& rules = RulesOf(field);
  std::vector<std::string> parts;
  if (rules.required()) {
    std::vector<std::string> unless;
    for (const std::string& name : rules.unless()) unless.push_back("`" + name + "`");
    parts.push_back(unless.empty() ? "required"
                                   : "required without " + absl::StrJoin(unless, " or "));
  }
  if (rules.has_min() && rules.has_max()) {
    parts.push_back(absl::StrCat(Bound(field, rules.min()), " to ", Bound(field, rules.max())));
  } else if (rules.has_min()) {
    parts.push_back(absl::StrCat("at least ", Bound(field, rules.min())));
  } else if (rules.has_max()) {
    parts.push_back(absl::StrCat("at most ", Bound(field, rules.max())));
  }
  for (const std::string& word : rules.one_of()) parts.push_back("`" + word + "`");
  if (rules.auto_()) parts.push_back("`auto`");
  return absl::StrJoin(parts, ", ");
}

std::string Default(const FieldDescriptor& field) {
  const std::string& text = RulesOf(field).default_();
  if (text.empty()) return "";
  return DefaultIsValue(field) ? "`" + text + "`" : text;
}

// Returns a comment as one paragraph; "" if there is none.
template <typename D>
std::string Comment(const D& descriptor) {
  google::protobuf::SourceLocation location;
  if (!descriptor.GetSourceLocation(&location)) return "";
  std::string comment = location.leading_comments + location.trailing_comments;
  std::vector<std::string> words =
      absl::StrSplit(comment, absl::ByAnyChar(" \n\t"), absl::SkipWhitespace());
  return absl::StrJoin(words, " ");
}

}  // namespace

bool DefaultIsValue(const FieldDescriptor& field) {
  const std::string& text = RulesOf(field).default_();
  return !text.empty() && !absl::StrContains(text, ", or ");
}

FieldDoc DocOf(const FieldDescriptor& field) {
  FieldDoc doc;
  doc.type = TypeWord(field);
  doc.default_value = Default(field);
  doc.allowed = Allowed(field);
  doc.meaning = Comment(field);
  const bool section = !IsScalarField(field) && !field.is_map();
  if (section && doc.meaning.empty()) doc.meaning = Comment(*field.message_type());
  return doc;
}

std::string CommentOf(const Descriptor& type) { return Comment(type); }

std::string CommentOf(const FieldDescriptor& field) { return Comment(field); }

std::string CommentOf(const google::protobuf::MethodDescriptor& method) { return Comment(method); }

absl::StatusOr<const Descriptor*> BuildSpec(const google::protobuf::FileDescriptorSet& files,
                                            google::protobuf::DescriptorPool& pool) {
  for (const auto& file : files.file()) {
    if (pool.BuildFile(file) == nullptr) {
      return absl::InvalidArgumentError(absl::StrCat("cannot build ", file.name()));
    }
  }
  const Descriptor* const spec = pool.FindMessageTypeByName("traind.v1.JobSpec");
  if (spec == nullptr) return absl::InvalidArgumentError("there is no traind.v1.JobSpec");
  return spec;
}

}  // namespace traind
