// The plain structs of the spec say what proto/job.proto says, field by field.
#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>

#include "common/plain/plain_json.h"
#include "common/spec/field_text.h"
#include "common/spec/spec_rules.h"
#include "proto/plain/job.h"

namespace traind {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using Json = nlohmann::json;

// Every oneof of the spec, each of its members once.
constexpr const char* kSpecs[] = {
    R"({"api":"v1","task":{"type":"classification"},"data":{"train":"/t"},"model":{"mlp":{}},"train":{}})",
    R"({"api":"v1","task":{"type":"regression"},"data":{"train":"/t"},"model":{"lstm":{}},"train":{}})",
    R"({"api":"v1","task":{"type":"regression"},"data":{"train":"/t"},"model":{"transformer":{}},"train":{}})",
    R"({"api":"v1","task":{"type":"regression"},"data":{"train":"/t"},"model":{"script":{"file":"/f"}},"train":{}})",
    R"({"api":"v1","task":{"type":"classification"},"data":{"train":"/t","image":{}},"model":{"cnn":{}},
        "train":{"augment":{}}})",
    R"({"api":"v1","task":{"type":"classification"},"data":{"train":"/t","text":{}},"model":{"text":{},
        "pretrained":{"file":"/w"}},"train":{}})",
    R"({"api":"v1","task":{"type":"segmentation"},"data":{"train":"/t","volume":{}},"model":{"unet3d":{}},
        "train":{"patches":{}}})",
    R"({"api":"v1","predict":{"from":"j","data":"/d"}})",
    R"({"api":"v1","serve":{"from":"j"}})",
};

TEST(PlainSpecTest, DefaultsAreThoseOfAResolvedSpec) {
  for (const char* const text : kSpecs) {
    auto spec = SpecFromJson(text);
    ASSERT_TRUE(spec.ok()) << spec.status();
    const auto resolved = plain::FromJson<plain::JobSpec>(SpecToJson(ResolveSpec(*spec)));
    ASSERT_TRUE(resolved.ok()) << text << ": " << resolved.status();
    auto plain = plain::FromJson<plain::JobSpec>(text);
    ASSERT_TRUE(plain.ok()) << text << ": " << plain.status();
    plain->task.metric = resolved->task.metric;  // by the task's type
    EXPECT_EQ(Json::parse(plain::ToJson(*plain)), Json::parse(plain::ToJson(*resolved))) << text;
  }
}

// Calls visit(field, its path, a JSON object around a value of it).
using Wrap = std::function<Json(Json)>;
void VisitFields(
    const Descriptor& type, const std::string& path, const Wrap& wrap,
    const std::function<void(const FieldDescriptor&, const std::string&, const Wrap&)>& visit) {
  for (int i = 0; i < type.field_count(); ++i) {
    const FieldDescriptor& field = *type.field(i);
    const std::string below = path.empty() ? field.name() : absl::StrCat(path, ".", field.name());
    const std::string item = field.is_repeated() ? absl::StrCat(below, "[0]") : below;
    const Wrap around = [&wrap, &field](Json value) {
      if (field.is_repeated()) value = Json::array({value});
      return wrap({{field.name(), value}});
    };
    if (IsScalarField(field)) {
      visit(field, item, around);
    } else if (!field.is_map()) {
      VisitFields(*field.message_type(), item, around, visit);
    }
  }
}
void VisitSpec(
    const std::function<void(const FieldDescriptor&, const std::string&, const Wrap&)>& visit) {
  VisitFields(
      *v1::JobSpec::descriptor(), "", [](Json value) { return value; }, visit);
}

std::string Refusal(const Json& json) {
  return std::string(plain::FromJson<plain::JobSpec>(json.dump()).status().message());
}

TEST(PlainSpecTest, EveryRangeRefusesTheValuesJustOutsideIt) {
  int bounds = 0;
  VisitSpec([&](const FieldDescriptor& field, const std::string& path, const Wrap& wrap) {
    const v1::FieldRules& rules = RulesOf(field);
    const bool duration = field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE;
    const bool real = field.cpp_type() == FieldDescriptor::CPPTYPE_DOUBLE;
    const auto json = [&](double value) {
      return wrap(duration ? Json(absl::StrFormat("%.12fs", value))
                  : real   ? Json(value)
                           : Json(static_cast<int64_t>(value)));
    };
    const auto check = [&](double bound, double sign) {
      ++bounds;
      double outside = duration ? bound + sign * 1e-6
                       : real   ? std::nextafter(bound, sign * HUGE_VAL)
                                : bound + sign;
      // Zero is an unset field where none is a default.
      const bool open = !field.has_presence() && !field.is_repeated() &&
                        (rules.auto_() || rules.default_().empty());
      if (open && outside == 0) outside = -1;
      EXPECT_TRUE(absl::StartsWith(Refusal(json(outside)), path + ": ")) << path << " " << outside;
      EXPECT_FALSE(absl::StrContains(Refusal(json(bound)), "is not in")) << path << " " << bound;
    };
    if (rules.has_min()) check(rules.min(), -1);
    if (rules.has_max()) check(rules.max(), 1);
  });
  EXPECT_GT(bounds, 100);
}

TEST(PlainSpecTest, WordsAreThoseOfTheField) {
  int words = 0;
  VisitSpec([&](const FieldDescriptor& field, const std::string& path, const Wrap& wrap) {
    if (RulesOf(field).one_of_size() == 0) return;
    for (const std::string& word : RulesOf(field).one_of()) {
      ++words;
      EXPECT_EQ(Refusal(wrap(word)), "") << path;
    }
    EXPECT_TRUE(absl::StartsWith(Refusal(wrap("nonsense")), path + ": ")) << path;
  });
  EXPECT_GT(words, 40);
}

}  // namespace
}  // namespace traind
