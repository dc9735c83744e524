#include "common/wire/render_json.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>
#include <absl/time/time.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/duration.pb.h>
#include <google/protobuf/timestamp.pb.h>

#include <map>
#include <vector>

#include "common/base/duration.h"
#include "common/base/json_text.h"
#include "common/spec/field_text.h"

namespace traind {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

class JsonWriter {
 public:
  explicit JsonWriter(bool pretty) : pretty_(pretty) {}

  void WriteMessage(const Message& message) {
    if (message.GetDescriptor() == google::protobuf::Timestamp::descriptor()) {
      const auto& t = static_cast<const google::protobuf::Timestamp&>(message);
      text_ += JsonString(
          TimestampToText(absl::FromUnixSeconds(t.seconds()) + absl::Nanoseconds(t.nanos())));
      return;
    }
    if (message.GetDescriptor() == google::protobuf::Duration::descriptor()) {
      const auto& d = static_cast<const google::protobuf::Duration&>(message);
      absl::StrAppendFormat(&text_, "\"%.3fs\"",
                            static_cast<double>(d.seconds()) + 1e-9 * d.nanos());
      return;
    }
    const google::protobuf::Descriptor& type = *message.GetDescriptor();
    Open('{');
    for (int i = 0; i < type.field_count(); ++i) {
      Separate(i == 0);
      absl::StrAppend(&text_, "\"", type.field(i)->name(), "\":", pretty_ ? " " : "");
      WriteField(message, *type.field(i));
    }
    Close('}', type.field_count() == 0);
  }

  void WriteField(const Message& message, const FieldDescriptor& field) {
    if (field.is_map()) return WriteMap(message, field);
    if (!field.is_repeated()) return WriteValue(message, field, -1);
    const int size = message.GetReflection()->FieldSize(message, &field);
    if (field.cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) {
      text_ += '[';
      for (int k = 0; k < size; ++k) {
        if (k > 0) text_ += pretty_ ? ", " : ",";
        WriteValue(message, field, k);
      }
      text_ += ']';
      return;
    }
    Open('[');
    for (int k = 0; k < size; ++k) {
      Separate(k == 0);
      WriteValue(message, field, k);
    }
    Close(']', size == 0);
  }

  std::string Take() { return std::move(text_); }

 private:
  void Open(char bracket) {
    text_ += bracket;
    ++depth_;
  }
  void Separate(bool first) {
    if (!first) text_ += ',';
    if (pretty_) text_.append(1, '\n').append(2 * depth_, ' ');
  }
  void Close(char bracket, bool empty) {
    --depth_;
    if (pretty_ && !empty) text_.append(1, '\n').append(2 * depth_, ' ');
    text_ += bracket;
  }

  // Writes keys in alphabetical order.
  void WriteMap(const Message& message, const FieldDescriptor& field) {
    const Reflection& access = *message.GetReflection();
    std::map<std::string, const Message*> sorted;
    for (int k = 0; k < access.FieldSize(message, &field); ++k) {
      const Message& entry = access.GetRepeatedMessage(message, &field, k);
      sorted[entry.GetReflection()->GetString(entry, field.message_type()->map_key())] = &entry;
    }
    Open('{');
    bool first = true;
    for (const auto& [key, entry] : sorted) {
      Separate(first);
      first = false;
      absl::StrAppend(&text_, JsonString(key), ":", pretty_ ? " " : "");
      WriteValue(*entry, *field.message_type()->map_value(), -1);
    }
    Close('}', first);
  }

  // index: that of a repeated field's element, else -1.
  void WriteValue(const Message& message, const FieldDescriptor& field, int index) {
    const Reflection& access = *message.GetReflection();
    if (index < 0 && field.has_presence() && !access.HasField(message, &field)) {
      text_ += "null";
      return;
    }
// Expands to one case of the switch below.
#define TRAIND_VALUE(TYPE, Name, ...)                                                 \
  case FieldDescriptor::CPPTYPE_##TYPE: {                                             \
    const auto& value = index < 0 ? access.Get##Name(message, &field)                 \
                                  : access.GetRepeated##Name(message, &field, index); \
    __VA_ARGS__;                                                                      \
    return;                                                                           \
  }
    switch (field.cpp_type()) {
      TRAIND_VALUE(INT32, Int32, absl::StrAppend(&text_, value))
      TRAIND_VALUE(INT64, Int64, absl::StrAppend(&text_, value))
      TRAIND_VALUE(UINT32, UInt32, absl::StrAppend(&text_, value))
      TRAIND_VALUE(UINT64, UInt64, absl::StrAppend(&text_, value))
      TRAIND_VALUE(DOUBLE, Double, text_ += JsonNumber(value))
      TRAIND_VALUE(FLOAT, Float, text_ += JsonNumber(value))
      TRAIND_VALUE(BOOL, Bool, text_ += value ? "true" : "false")
      TRAIND_VALUE(STRING, String, text_ += JsonString(value))
      TRAIND_VALUE(MESSAGE, Message, WriteMessage(value))
      case FieldDescriptor::CPPTYPE_ENUM: {
        const auto* value = index < 0 ? access.GetEnum(message, &field)
                                      : access.GetRepeatedEnum(message, &field, index);
        text_ += value->number() == 0 ? "null" : JsonString(EnumWord(*value));
        return;
      }
    }
#undef TRAIND_VALUE
  }

  const bool pretty_;
  std::string text_;
  size_t depth_ = 0;
};

}  // namespace

std::string ToJson(const Message& message) {
  JsonWriter writer(/*pretty=*/true);
  writer.WriteMessage(message);
  return writer.Take();
}

std::string ToJsonLine(const Message& message) {
  JsonWriter writer(/*pretty=*/false);
  writer.WriteMessage(message);
  return writer.Take();
}

std::string ToJsonArray(const Message& message, absl::string_view field) {
  JsonWriter writer(/*pretty=*/true);
  writer.WriteField(message, *message.GetDescriptor()->FindFieldByName(std::string(field)));
  return writer.Take();
}

}  // namespace traind
