#include "common/wire/proto_fields.h"

#include <google/protobuf/descriptor.h>

#include <cstdlib>
#include <string>

#include "common/base/log.h"

namespace traind {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

const FieldDescriptor* FindField(const Message& message, const Field& field) {
  const FieldDescriptor* found = message.GetDescriptor()->FindFieldByName(field.name);
  if (found == nullptr) {
    TRAIND_LOG(ERROR) << message.GetTypeName() << " has no field " << field.name;
    std::abort();
  }
  return found;
}

struct Writer {
  Message* message;
  const Reflection* reflection;
  const FieldDescriptor* to;

  void operator()(const bool* value) const { reflection->SetBool(message, to, *value); }
  void operator()(const int* value) const { reflection->SetInt32(message, to, *value); }
  void operator()(const int64_t* value) const { reflection->SetInt64(message, to, *value); }
  void operator()(const uint64_t* value) const { reflection->SetUInt64(message, to, *value); }
  void operator()(const double* value) const { reflection->SetDouble(message, to, *value); }
  void operator()(const std::string* value) const { reflection->SetString(message, to, *value); }
  void operator()(const std::vector<std::string>* values) const {
    for (const std::string& value : *values) reflection->AddString(message, to, value);
  }
  void operator()(const std::vector<double>* values) const {
    for (const double value : *values) reflection->AddDouble(message, to, value);
  }
  void operator()(const EnumField& value) const {
    if (to->cpp_type() == FieldDescriptor::CPPTYPE_STRING) {
      reflection->SetString(message, to, value.name());
    } else {
      reflection->SetEnumValue(message, to, value.number());
    }
  }
  void operator()(const std::vector<Field>& inner) const {
    CopyToProto(inner, *reflection->MutableMessage(message, to));
  }
};

struct Reader {
  const Message& message;
  const Reflection* reflection;
  const FieldDescriptor* from;

  void operator()(bool* value) const { *value = reflection->GetBool(message, from); }
  void operator()(int* value) const { *value = reflection->GetInt32(message, from); }
  void operator()(int64_t* value) const { *value = reflection->GetInt64(message, from); }
  void operator()(uint64_t* value) const { *value = reflection->GetUInt64(message, from); }
  void operator()(double* value) const { *value = reflection->GetDouble(message, from); }
  void operator()(std::string* value) const { *value = reflection->GetString(message, from); }
  void operator()(std::vector<std::string>* values) const {
    values->clear();
    for (int i = 0; i < reflection->FieldSize(message, from); ++i) {
      values->push_back(reflection->GetRepeatedString(message, from, i));
    }
  }
  void operator()(std::vector<double>* values) const {
    values->clear();
    for (int i = 0; i < reflection->FieldSize(message, from); ++i) {
      values->push_back(reflection->GetRepeatedDouble(message, from, i));
    }
  }
  void operator()(const EnumField& value) const {
    if (from->cpp_type() == FieldDescriptor::CPPTYPE_STRING) {
      value.set_name(reflection->GetString(message, from));
    } else {
      value.set_number(reflection->GetEnumValue(message, from));
    }
  }
  void operator()(const std::vector<Field>& inner) const {
    CopyFromProto(reflection->GetMessage(message, from), inner);
  }
};

}  // namespace

void CopyToProto(const std::vector<Field>& fields, Message& message) {
  for (const Field& field : fields) {
    std::visit(Writer{&message, message.GetReflection(), FindField(message, field)}, field.value);
  }
}

void CopyFromProto(const Message& message, const std::vector<Field>& fields) {
  for (const Field& field : fields) {
    std::visit(Reader{message, message.GetReflection(), FindField(message, field)}, field.value);
  }
}

}  // namespace traind
