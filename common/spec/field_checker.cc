#include "common/spec/field_checker.h"

#include <absl/strings/ascii.h>
#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "common/base/field_path.h"
#include "common/base/utf8.h"
#include "common/spec/field_text.h"

namespace traind {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

namespace {

constexpr size_t kLongestText = 4096;

bool IsRequired(const Message& message, const FieldDescriptor& field) {
  const auto& unless = RulesOf(field).unless();
  return RulesOf(field).required() &&
         std::none_of(unless.begin(), unless.end(), [&](const std::string& other) {
           return IsSet(message, *message.GetDescriptor()->FindFieldByName(other));
         });
}

}  // namespace

void FieldChecker::CheckMessage(const Message& message, const std::string& path) {
  const Descriptor& type = *message.GetDescriptor();
  for (int i = 0; i < type.field_count(); ++i) {
    const FieldDescriptor& field = *type.field(i);
    const std::string field_path = FieldPath(path, field.name());
    if (field.is_map()) {  // CheckLabels, CheckPretrained, CheckSearch and CheckCommand check the
                           // rest
      CheckEntries(message, field, field_path);
      continue;
    }
    if (!IsSet(message, field)) {
      if (!partial_ && IsRequired(message, field)) Add(field_path, "is missing");
    } else if (field.is_repeated()) {
      const int size = message.GetReflection()->FieldSize(message, &field);
      for (int k = 0; k < size; ++k) {
        CheckValue(message, field, k, absl::StrCat(field_path, "[", k, "]"));
      }
    } else {
      CheckValue(message, field, -1, field_path);
    }
  }
}

void FieldChecker::Add(const std::string& path, absl::string_view what) {
  errors.push_back({path, absl::StrCat(path, " ", what)});
}

void FieldChecker::Add(const std::string& path, const absl::Status& status) {
  if (!status.ok()) Add(path, status.message());
}

void FieldChecker::CheckValue(const Message& message, const FieldDescriptor& field, int index,
                              const std::string& path) {
  const Reflection& access = *message.GetReflection();
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return CheckSubmessage(index < 0 ? access.GetMessage(message, &field)
                                       : access.GetRepeatedMessage(message, &field, index),
                             RulesOf(field), path);
    case FieldDescriptor::CPPTYPE_STRING:
      return CheckText(index < 0 ? access.GetString(message, &field)
                                 : access.GetRepeatedString(message, &field, index),
                       RulesOf(field), path);
    case FieldDescriptor::CPPTYPE_INT32:
      return CheckNumber(index < 0 ? access.GetInt32(message, &field)
                                   : access.GetRepeatedInt32(message, &field, index),
                         RulesOf(field), path);
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return CheckNumber(index < 0 ? access.GetDouble(message, &field)
                                   : access.GetRepeatedDouble(message, &field, index),
                         RulesOf(field), path);
    default:
      return;  // the spec has no bounded field of another type
  }
}

void FieldChecker::CheckNumber(double value, const v1::FieldRules& rules, const std::string& path) {
  const std::string shown = absl::StrCat(value);
  if (!std::isfinite(value)) return Add(path, absl::StrCat("'", shown, "' is not finite"));
  Add(path, CheckRange(rules, value, shown));
}

bool FieldChecker::CheckUtf8(const std::string& text, const std::string& path) {
  const size_t at = FirstNotUtf8(text);
  if (at == std::string::npos || text[at] == '\0') return true;
  Add(path,
      absl::StrFormat("is not UTF-8 text: byte 0x%02x", static_cast<unsigned char>(text[at])));
  return false;
}

void FieldChecker::CheckEntries(const Message& message, const FieldDescriptor& map,
                                const std::string& path) {
  const Reflection& access = *message.GetReflection();
  for (int i = 0; i < access.FieldSize(message, &map); ++i) {
    const Message& entry = access.GetRepeatedMessage(message, &map, i);
    for (const FieldDescriptor* part :
         {map.message_type()->map_key(), map.message_type()->map_value()}) {
      if (part->cpp_type() != FieldDescriptor::CPPTYPE_STRING) continue;
      if (!CheckUtf8(entry.GetReflection()->GetString(entry, part), path)) return;
    }
  }
}

void FieldChecker::CheckText(const std::string& text, const v1::FieldRules& rules,
                             const std::string& path) {
  if (text.size() > kLongestText) {
    return Add(path, absl::StrCat("has ", text.size(), " bytes; ", kLongestText, " are the most"));
  }
  if (!CheckUtf8(text, path)) return;
  for (char c : text) {
    if (absl::ascii_iscntrl(c) && !(rules.lines() && (c == '\n' || c == '\t'))) {
      return Add(path, absl::StrCat("'", Printable(text), "' contains a control character"));
    }
  }
  Add(path, CheckWord(rules, text));
  if (rules.path() && text[0] != '/' && !absl::StartsWith(text, "sha256:")) {
    Add(path, absl::StrCat("'", Printable(text), "' is not an absolute path"));
  }
}

void FieldChecker::CheckSubmessage(const Message& message, const v1::FieldRules& rules,
                                   const std::string& path) {
  if (message.GetDescriptor() == google::protobuf::Duration::descriptor()) {
    const auto& d = static_cast<const google::protobuf::Duration&>(message);
    if (std::abs(d.nanos()) > 999999999 || (d.seconds() > 0 && d.nanos() < 0) ||
        (d.seconds() < 0 && d.nanos() > 0)) {
      return Add(path, "is no valid google.protobuf.Duration");
    }
    const double seconds = static_cast<double>(d.seconds()) + 1e-9 * d.nanos();
    return Add(path, CheckRange(rules, seconds, absl::StrCat(seconds, "s"), "s"));
  }
  if (message.GetDescriptor() == google::protobuf::Timestamp::descriptor()) {
    const auto& t = static_cast<const google::protobuf::Timestamp&>(message);
    constexpr int64_t kYear1 = -62135596800, kYear9999 = 253402300799;
    if (t.nanos() < 0 || t.nanos() > 999999999 || t.seconds() < kYear1 || t.seconds() > kYear9999) {
      Add(path, "is no valid google.protobuf.Timestamp");
    }
    return;
  }
  CheckMessage(message, path);
}

}  // namespace traind
