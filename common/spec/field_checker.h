// Checks each field of a spec by its rules (proto/field_rules.proto), and collects what is wrong.
#pragma once

#include <absl/status/status.h>
#include <absl/strings/string_view.h>
#include <google/protobuf/message.h>

#include <string>
#include <vector>

#include "common/spec/spec_rules.h"
#include "proto/field_rules.pb.h"

namespace traind {

// Threads: confined to one.
class FieldChecker {
 public:
  // partial: what is missing comes from another spec.
  explicit FieldChecker(bool partial) : partial_(partial) {}

  std::vector<SpecError> errors;

  bool partial() const { return partial_; }

  void CheckMessage(const google::protobuf::Message& message, const std::string& path);

  void Add(const std::string& path, absl::string_view what);

 private:
  void Add(const std::string& path, const absl::Status& status);

  // index: of a repeated field's element, else -1.
  void CheckValue(const google::protobuf::Message& message,
                  const google::protobuf::FieldDescriptor& field, int index,
                  const std::string& path);

  void CheckNumber(double value, const v1::FieldRules& rules, const std::string& path);

  // Adds an error and returns false if the text has bytes that JSON and Protobuf refuse.
  bool CheckUtf8(const std::string& text, const std::string& path);

  void CheckEntries(const google::protobuf::Message& message,
                    const google::protobuf::FieldDescriptor& map, const std::string& path);

  void CheckText(const std::string& text, const v1::FieldRules& rules, const std::string& path);

  void CheckSubmessage(const google::protobuf::Message& message, const v1::FieldRules& rules,
                       const std::string& path);

  const bool partial_;
};

}  // namespace traind
