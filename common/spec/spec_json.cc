// SpecToJson: what protobuf's own JSON printer writes, with keys in order. That
// printer describes every message type anew for each message and takes longer than
// all else that a Submit needs.
#include <absl/container/flat_hash_map.h>
#include <absl/strings/str_cat.h>
#include <google/protobuf/util/time_util.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "common/spec/named_json.h"
#include "common/spec/spec_rules.h"

namespace traind {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;
using google::protobuf::util::TimeUtil;

void WriteText(const std::string& text, std::string& out) {
  const auto plain = [](char c) { return c >= ' ' && c < 127 && c != '"' && c != '\\'; };
  if (std::all_of(text.begin(), text.end(), plain)) {
    out += '"';
    out += text;
    out += '"';
    return;
  }
  out += nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

void WriteNumber(double value, std::string& out) {
  if (!std::isfinite(value))
    return WriteText(std::isnan(value) ? "NaN" : value > 0 ? "Infinity" : "-Infinity", out);
  // 1, not 1.0, where an integer says it all.
  if (value == std::trunc(value) && std::abs(value) < 1e15) {
    out += std::to_string(static_cast<int64_t>(value));
  } else {
    out += nlohmann::json(value).dump();
  }
}

void WriteMessage(const Message& message, std::string& out);

// index: of a repeated field's element, else -1.
void WriteValue(const Message& message, const FieldDescriptor& field, int index, std::string& out) {
  const Reflection& access = *message.GetReflection();
  const bool one = index < 0;
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      out += std::to_string(one ? access.GetInt32(message, &field)
                                : access.GetRepeatedInt32(message, &field, index));
      return;
    case FieldDescriptor::CPPTYPE_UINT64:
      return WriteText(std::to_string(one ? access.GetUInt64(message, &field)
                                          : access.GetRepeatedUInt64(message, &field, index)),
                       out);
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return WriteNumber(one ? access.GetDouble(message, &field)
                             : access.GetRepeatedDouble(message, &field, index),
                         out);
    case FieldDescriptor::CPPTYPE_BOOL:
      out +=
          (one ? access.GetBool(message, &field) : access.GetRepeatedBool(message, &field, index))
              ? "true"
              : "false";
      return;
    case FieldDescriptor::CPPTYPE_STRING: {
      std::string scratch;
      return WriteText(one ? access.GetStringReference(message, &field, &scratch)
                           : access.GetRepeatedStringReference(message, &field, index, &scratch),
                       out);
    }
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return WriteMessage(one ? access.GetMessage(message, &field)
                              : access.GetRepeatedMessage(message, &field, index),
                          out);
    default:
      // A test holds every field of the spec to protobuf's printer.
      out += "null";
  }
}

void WriteMap(const Message& message, const FieldDescriptor& field, std::string& out) {
  const Reflection& access = *message.GetReflection();
  const FieldDescriptor& key = *field.message_type()->map_key();
  std::map<std::string, int> order;
  for (int i = 0; i < access.FieldSize(message, &field); ++i) {
    const Message& entry = access.GetRepeatedMessage(message, &field, i);
    order.emplace(entry.GetReflection()->GetString(entry, &key), i);
  }
  out += '{';
  for (const auto& [text, i] : order) {
    if (out.back() != '{') out += ',';
    WriteText(text, out);
    out += ':';
    WriteValue(access.GetRepeatedMessage(message, &field, i), *field.message_type()->map_value(),
               -1, out);
  }
  out += '}';
}

void WriteField(const Message& message, const FieldDescriptor& field, std::string& out) {
  if (field.is_map()) return WriteMap(message, field, out);
  if (!field.is_repeated()) return WriteValue(message, field, -1, out);
  out += '[';
  for (int i = 0; i < message.GetReflection()->FieldSize(message, &field); ++i) {
    if (i > 0) out += ',';
    WriteValue(message, field, i, out);
  }
  out += ']';
}

// By their names. They are sorted once in each thread: a Submit writes some hundred messages.
const std::vector<const FieldDescriptor*>& FieldsInOrder(const Descriptor& type) {
  thread_local absl::flat_hash_map<const Descriptor*,
                                   std::unique_ptr<std::vector<const FieldDescriptor*>>>
      known;
  std::unique_ptr<std::vector<const FieldDescriptor*>>& fields = known[&type];
  if (fields != nullptr) return *fields;
  fields = std::make_unique<std::vector<const FieldDescriptor*>>();
  for (int i = 0; i < type.field_count(); ++i) fields->push_back(type.field(i));
  std::sort(fields->begin(), fields->end(), [](const FieldDescriptor* a, const FieldDescriptor* b) {
    return a->name() < b->name();
  });
  return *fields;
}

void WriteMessage(const Message& message, std::string& out) {
  const Descriptor& type = *message.GetDescriptor();
  if (&type == google::protobuf::Duration::descriptor()) {
    return WriteText(TimeUtil::ToString(static_cast<const google::protobuf::Duration&>(message)),
                     out);
  }
  if (&type == google::protobuf::Timestamp::descriptor()) {
    return WriteText(TimeUtil::ToString(static_cast<const google::protobuf::Timestamp&>(message)),
                     out);
  }
  const Reflection& access = *message.GetReflection();
  out += '{';
  for (const FieldDescriptor* field : FieldsInOrder(type)) {
    // Fields that tell unset from zero are left out when unset.
    if (field->has_presence() && !access.HasField(message, field)) continue;
    if (out.back() != '{') out += ',';
    out += '"';
    out += field->name();
    out += "\":";
    WriteField(message, *field, out);
  }
  out += '}';
}

}  // namespace

std::string SpecToJson(const v1::JobSpec& spec) {
  std::string json;
  WriteMessage(spec, json);
  return json;
}

NamedJson::NamedJson(v1::JobSpec spec) {
  spec.set_name("a");
  const std::string one = SpecToJson(spec);
  spec.set_name("b");
  const std::string other = SpecToJson(spec);
  const auto name = std::mismatch(one.begin(), one.end(), other.begin()).first;
  before_.assign(one.begin(), name);
  after_.assign(name + 1, one.end());
}

std::string NamedJson::For(absl::string_view name) const {
  return absl::StrCat(before_, name, after_);
}

}  // namespace traind
