// One field of a spec, from the text of one scalar: the rules of
// proto/field_rules.proto, shared by the YAML reader and the defaults.
#pragma once

#include <absl/status/status.h>
#include <absl/strings/string_view.h>
#include <absl/time/time.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include <string>
#include <vector>

#include "proto/field_rules.pb.h"

namespace traind {

const v1::FieldRules& RulesOf(const google::protobuf::FieldDescriptor& field);

// Returns the repeated field that takes the YAML's list in place of this field; null: there is
// none.
const google::protobuf::FieldDescriptor* ListOf(const google::protobuf::FieldDescriptor& field);

// Whether YAML writes the field as one scalar: all but (other) messages.
bool IsScalarField(const google::protobuf::FieldDescriptor& field);

// Whether the field says something: a plain proto3 field at zero does not.
bool IsSet(const google::protobuf::Message& message,
           const google::protobuf::FieldDescriptor& field);

struct ScalarText {
  absl::string_view text;
  bool quoted = false;   // then it is text, whatever it looks like
  std::string base_dir;  // for fields that name files; empty: leave them
  absl::Time now;        // for moments like +2h
};

// Sets field of message, or appends to it where it is repeated. `auto` clears it.
// Errors: InvalidArgument, without the field's path: "'90' has no unit; ...".
absl::Status SetFieldFromText(const google::protobuf::FieldDescriptor& field,
                              const ScalarText& scalar, google::protobuf::Message& message);

// Whether a number (a Duration: its seconds) keeps min and max; `shown` is how
// the message writes it, `unit` what stands behind the bounds.
absl::Status CheckRange(const v1::FieldRules& rules, double value, absl::string_view shown,
                        absl::string_view unit = "");

// Whether a word is one of one_of (or there is no such rule).
absl::Status CheckWord(const v1::FieldRules& rules, absl::string_view word);

// Enum values as people write them: without the prefix that they share.
std::string EnumWord(const google::protobuf::EnumValueDescriptor& value);
std::vector<std::string> EnumWords(const google::protobuf::EnumDescriptor& type);

// base_dir and path as one path without "." and "..". sha256: references and
// absolute paths stay.
std::string ResolvePath(absl::string_view base_dir, absl::string_view path);

// Control characters as \n, \t or \xNN, cut to `limit` bytes: fit for a message.
std::string Printable(absl::string_view text, size_t limit = 80);

}  // namespace traind
