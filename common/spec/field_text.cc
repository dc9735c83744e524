#include "common/spec/field_text.h"

#include <absl/status/statusor.h>
#include <absl/strings/ascii.h>
#include <absl/strings/match.h>
#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>
#include <absl/strings/str_join.h>
#include <absl/strings/strip.h>
#include <google/protobuf/duration.pb.h>
#include <google/protobuf/timestamp.pb.h>

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <memory>

#include "common/base/duration.h"
#include "common/base/suggest.h"

namespace traind {
namespace {

using google::protobuf::EnumDescriptor;
using google::protobuf::EnumValueDescriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

constexpr char kDurationType[] = "google.protobuf.Duration";
constexpr char kTimestampType[] = "google.protobuf.Timestamp";

absl::Status Refuse(absl::string_view text, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat("'", Printable(text), "' ", why));
}

std::string AutoHint(const v1::FieldRules& rules) { return rules.auto_() ? ", or auto" : ""; }

bool IsNumberText(absl::string_view text) {
  absl::ConsumePrefix(&text, "-") || absl::ConsumePrefix(&text, "+");
  return !text.empty() && text.find_first_not_of("0123456789.eE+-") == text.npos &&
         (absl::ascii_isdigit(text[0]) || text[0] == '.');
}

// Whole numbers in decimal digits; a leading zero is octal to some readers.
absl::Status CheckDigits(const ScalarText& scalar, const v1::FieldRules& rules) {
  if (scalar.quoted) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", Printable(scalar.text), "\" is text; write the number without quotes"));
  }
  absl::string_view digits = scalar.text;
  absl::ConsumePrefix(&digits, "-") || absl::ConsumePrefix(&digits, "+");
  if (digits.empty() || digits.find_first_not_of("0123456789") != digits.npos) {
    return Refuse(scalar.text, absl::StrCat("is not a whole number", AutoHint(rules)));
  }
  if (digits.size() > 1 && digits[0] == '0') {
    return Refuse(scalar.text, "has a leading zero; write a decimal number");
  }
  return absl::OkStatus();
}

template <typename T>
absl::StatusOr<T> ReadInteger(const ScalarText& scalar, const v1::FieldRules& rules) {
  if (absl::Status status = CheckDigits(scalar, rules); !status.ok()) return status;
  if (!std::numeric_limits<T>::is_signed && scalar.text[0] == '-') {
    return Refuse(scalar.text, "is negative");
  }
  T value{};
  if (!absl::SimpleAtoi(scalar.text, &value)) {
    return Refuse(scalar.text,
                  absl::StrFormat("is out of range, %d to %d", std::numeric_limits<T>::min(),
                                  std::numeric_limits<T>::max()));
  }
  if (absl::Status status = CheckRange(rules, static_cast<double>(value), scalar.text);
      !status.ok()) {
    return status;
  }
  return value;
}

absl::StatusOr<double> ReadReal(const ScalarText& scalar, const v1::FieldRules& rules) {
  if (scalar.quoted) return CheckDigits(scalar, rules);
  double value = 0;
  if (!IsNumberText(scalar.text) || !absl::SimpleAtod(scalar.text, &value)) {
    return Refuse(scalar.text, absl::StrCat("is not a number", AutoHint(rules)));
  }
  if (!std::isfinite(value)) return Refuse(scalar.text, "is too large for a number");
  if (absl::Status status = CheckRange(rules, value, scalar.text); !status.ok()) return status;
  return value;
}

absl::StatusOr<bool> ReadBool(const ScalarText& scalar) {
  if (!scalar.quoted && scalar.text == "true") return true;
  if (!scalar.quoted && scalar.text == "false") return false;
  return Refuse(scalar.text, "is neither true nor false");
}

absl::StatusOr<const EnumValueDescriptor*> ReadEnum(const ScalarText& scalar,
                                                    const EnumDescriptor& type) {
  for (int i = 0; i < type.value_count(); ++i) {
    const EnumValueDescriptor* value = type.value(i);
    if (value->number() == 0) continue;  // UNSPECIFIED
    if (absl::EqualsIgnoreCase(EnumWord(*value), scalar.text)) return value;
  }
  const std::vector<std::string> words = EnumWords(type);
  return Refuse(scalar.text, absl::StrCat("must be one of: ", absl::StrJoin(words, ", "),
                                          DidYouMean(scalar.text, words)));
}

absl::StatusOr<std::string> ReadText(const ScalarText& scalar, const v1::FieldRules& rules) {
  if (absl::Status status = CheckWord(rules, scalar.text); !status.ok()) return status;
  if (rules.path() && !scalar.base_dir.empty() && !scalar.text.empty()) {
    if (scalar.text == "~" || absl::StartsWith(scalar.text, "~/")) {
      return Refuse(scalar.text, "begins with ~, which means no folder here; write the whole path");
    }
    if (absl::StrContains(scalar.text, "://")) {
      return Refuse(scalar.text, "is a URL; only files are read, so download it first");
    }
    return ResolvePath(scalar.base_dir, scalar.text);
  }
  return std::string(scalar.text);
}

absl::Status ReadDuration(const ScalarText& scalar, const v1::FieldRules& rules, Message& message) {
  auto duration = DurationFromText(scalar.text);
  if (!duration.ok()) return duration.status();
  absl::Status in_range = CheckRange(rules, absl::ToDoubleSeconds(*duration), scalar.text, "s");
  if (!in_range.ok()) return in_range;
  google::protobuf::Duration value;
  value.set_seconds(absl::ToInt64Seconds(*duration));
  value.set_nanos(
      static_cast<int32_t>(absl::ToInt64Nanoseconds(*duration - absl::Seconds(value.seconds()))));
  message.CopyFrom(value);
  return absl::OkStatus();
}

absl::Status ReadTimestamp(const ScalarText& scalar, Message& message) {
  absl::Time time;
  if (absl::string_view after = scalar.text; absl::ConsumePrefix(&after, "+")) {
    auto duration = DurationFromText(after);
    if (!duration.ok()) return duration.status();
    time = scalar.now + *duration;
  } else {
    auto moment = TimestampFromText(scalar.text);
    if (!moment.ok()) {
      return absl::InvalidArgumentError(absl::StrCat(moment.status().message(), " or like +2h"));
    }
    time = *moment;
  }
  google::protobuf::Timestamp value;
  const int64_t seconds = absl::ToUnixSeconds(time);
  value.set_seconds(seconds);
  value.set_nanos(
      static_cast<int32_t>(absl::ToInt64Nanoseconds(time - absl::FromUnixSeconds(seconds))));
  message.CopyFrom(value);
  return absl::OkStatus();
}

absl::Status ReadMessage(const FieldDescriptor& field, const ScalarText& scalar, Message& message) {
  const google::protobuf::Reflection& access = *message.GetReflection();
  // A value that is wrong must not leave the field set.
  std::unique_ptr<Message> value(
      access.GetMessageFactory()->GetPrototype(field.message_type())->New());
  absl::Status status = field.message_type()->full_name() == kDurationType
                            ? ReadDuration(scalar, RulesOf(field), *value)
                            : ReadTimestamp(scalar, *value);
  if (!status.ok()) return status;
  Message* target = field.is_repeated() ? access.AddMessage(&message, &field)
                                        : access.MutableMessage(&message, &field);
  target->CopyFrom(*value);
  return absl::OkStatus();
}

}  // namespace

const v1::FieldRules& RulesOf(const FieldDescriptor& field) {
  return field.options().GetExtension(v1::rules);
}

const FieldDescriptor* ListOf(const FieldDescriptor& field) {
  const std::string& name = RulesOf(field).list();
  return name.empty() ? nullptr : field.containing_type()->FindFieldByName(name);
}

bool IsScalarField(const FieldDescriptor& field) {
  if (field.cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) return true;
  const std::string& type = field.message_type()->full_name();
  return type == kDurationType || type == kTimestampType;
}

bool IsSet(const Message& message, const FieldDescriptor& field) {
  const auto& access = *message.GetReflection();
  return field.is_repeated() ? access.FieldSize(message, &field) > 0
                             : access.HasField(message, &field);
}

absl::Status CheckRange(const v1::FieldRules& rules, double value, absl::string_view shown,
                        absl::string_view unit) {
  const auto number = [unit](double bound) { return absl::StrFormat("%.12g%s", bound, unit); };
  if (rules.has_min() && value < rules.min()) {
    return Refuse(shown, absl::StrCat("is below the minimum, ", number(rules.min())));
  }
  if (rules.has_max() && value > rules.max()) {
    return Refuse(shown, absl::StrCat("is above the maximum, ", number(rules.max())));
  }
  return absl::OkStatus();
}

absl::Status CheckWord(const v1::FieldRules& rules, absl::string_view word) {
  if (rules.one_of_size() == 0 || word.empty()) return absl::OkStatus();
  std::vector<std::string> words(rules.one_of().begin(), rules.one_of().end());
  if (rules.auto_()) words.push_back("auto");
  for (const std::string& allowed : rules.one_of()) {
    if (word == allowed) return absl::OkStatus();
  }
  const bool single = words.size() == 1;
  return Refuse(word,
                absl::StrCat(single ? "is not " : "must be one of: ", absl::StrJoin(words, ", "),
                             rules.list().empty() ? "" : ", or a list",
                             single ? "" : DidYouMean(word, words)));
}

absl::Status SetFieldFromText(const FieldDescriptor& field, const ScalarText& scalar,
                              Message& message) {
  const google::protobuf::Reflection& access = *message.GetReflection();
  const v1::FieldRules& rules = RulesOf(field);
  const bool text_field = field.cpp_type() == FieldDescriptor::CPPTYPE_STRING;
  if (!field.is_repeated() && rules.auto_() && scalar.text == "auto" && !scalar.quoted) {
    access.ClearField(&message, &field);
    return absl::OkStatus();
  }
  if (!text_field && !rules.auto_() && scalar.text == "auto") {
    return absl::InvalidArgumentError("'auto' cannot stand here");
  }
// One case of the switch below: read, then set or append.
#define TRAIND_SCALAR(TYPE, Name, read)           \
  case FieldDescriptor::CPPTYPE_##TYPE: {         \
    auto value = read;                            \
    if (!value.ok()) return value.status();       \
    if (field.is_repeated()) {                    \
      access.Add##Name(&message, &field, *value); \
    } else {                                      \
      access.Set##Name(&message, &field, *value); \
    }                                             \
    return absl::OkStatus();                      \
  }
  switch (field.cpp_type()) {
    TRAIND_SCALAR(INT32, Int32, ReadInteger<int32_t>(scalar, rules))
    TRAIND_SCALAR(INT64, Int64, ReadInteger<int64_t>(scalar, rules))
    TRAIND_SCALAR(UINT32, UInt32, ReadInteger<uint32_t>(scalar, rules))
    TRAIND_SCALAR(UINT64, UInt64, ReadInteger<uint64_t>(scalar, rules))
    TRAIND_SCALAR(DOUBLE, Double, ReadReal(scalar, rules))
    TRAIND_SCALAR(FLOAT, Float, ReadReal(scalar, rules))
    TRAIND_SCALAR(BOOL, Bool, ReadBool(scalar))
    TRAIND_SCALAR(ENUM, Enum, ReadEnum(scalar, *field.enum_type()))
    TRAIND_SCALAR(STRING, String, ReadText(scalar, rules))
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return ReadMessage(field, scalar, message);
  }
#undef TRAIND_SCALAR
  return absl::InternalError("a field of an unknown type");
}

std::string EnumWord(const EnumValueDescriptor& value) {
  // JobState -> JOB_STATE_; words of one message, like MODE_, likewise.
  std::string prefix;
  for (char c : value.type()->name()) {
    if (absl::ascii_isupper(c) && !prefix.empty()) prefix += '_';
    prefix += absl::ascii_toupper(c);
  }
  return std::string(absl::StripPrefix(value.name(), prefix + "_"));
}

std::vector<std::string> EnumWords(const EnumDescriptor& type) {
  std::vector<std::string> words;
  for (int i = 0; i < type.value_count(); ++i) {
    if (type.value(i)->number() != 0) words.push_back(EnumWord(*type.value(i)));
  }
  return words;
}

std::string ResolvePath(absl::string_view base_dir, absl::string_view path) {
  if (absl::StartsWith(path, "sha256:")) return std::string(path);
  const std::filesystem::path joined =
      std::filesystem::path(std::string(base_dir)) / std::string(path);
  return joined.lexically_normal().string();
}

std::string Printable(absl::string_view text, size_t limit) {
  std::string shown;
  for (size_t i = 0; i < text.size(); ++i) {
    if (shown.size() >= limit && (static_cast<unsigned char>(text[i]) & 0xC0) != 0x80) {
      return shown + "...";
    }
    const unsigned char c = static_cast<unsigned char>(text[i]);
    // U+0080 to U+009F (C2 80-9F) are control characters to some terminals.
    const bool c1 =
        c == 0xC2 && i + 1 < text.size() && static_cast<unsigned char>(text[i + 1]) < 0xA0;
    if (c == '\n') {
      shown += "\\n";
    } else if (c == '\t') {
      shown += "\\t";
    } else if (c < 0x20 || c == 0x7F || c1) {
      absl::StrAppendFormat(&shown, "\\x%02x", c);
      if (c1) absl::StrAppendFormat(&shown, "\\x%02x", static_cast<unsigned char>(text[++i]));
    } else {
      shown += static_cast<char>(c);
    }
  }
  return shown;
}

}  // namespace traind
