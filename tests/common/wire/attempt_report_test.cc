// Facts and their Protobuf messages: the same fields on both sides, and each survives the way.
#include "common/wire/attempt_report.h"

#include <gmock/gmock.h>
#include <google/protobuf/descriptor.h>
#include <gtest/gtest.h>

#include <limits>
#include <set>

#include "common/wire/proto_fields.h"
#include "tests/common/facts/field_values.h"

namespace traind {
namespace {

using google::protobuf::Descriptor;

std::set<std::string> NamesIn(const Descriptor& message) {
  std::set<std::string> names;
  for (int i = 0; i < message.field_count(); ++i) names.insert(message.field(i)->name());
  return names;
}

template <class M>
std::set<std::string> NamesIn() {
  std::set<std::string> names;
  for (const Field& field : M().Fields()) names.insert(field.name);
  return names;
}

template <class M>
class FactTest : public ::testing::Test {
 protected:
  static const Descriptor& Message() {
    return *v1::AttemptReport::descriptor()->FindFieldByName(M::kType)->message_type();
  }
};

template <class Variant>
struct Alternatives;
template <class... M>
struct Alternatives<std::variant<M...>> {
  using Types = ::testing::Types<M...>;
};
TYPED_TEST_SUITE(FactTest, Alternatives<facts::Fact>::Types);

TYPED_TEST(FactTest, TheStructAndTheMessageHaveTheSameFields) {
  EXPECT_EQ(NamesIn<TypeParam>(), NamesIn(this->Message()));
}

TYPED_TEST(FactTest, EveryFieldSurvivesTheWire) {
  const TypeParam sent = Filled<TypeParam>();
  const std::string bytes = ReportOf(7, sent).SerializeAsString();
  v1::AttemptReport report;
  ASSERT_TRUE(report.ParseFromString(bytes));
  EXPECT_EQ(report.attempt(), 7);
  const std::optional<facts::Fact> got = FactOf(report);
  ASSERT_TRUE(got.has_value());
  ASSERT_TRUE(std::holds_alternative<TypeParam>(*got));
  EXPECT_EQ(Shown(std::get<TypeParam>(*got)), Shown(sent));
}

// Or the test above would compare nothing.
TYPED_TEST(FactTest, AFieldThatGetsLostIsNoticed) {
  for (const Field& dropped : Filled<TypeParam>().Fields()) {
    v1::AttemptReport report = ReportOf(7, Filled<TypeParam>());
    const auto* member = v1::AttemptReport::descriptor()->FindFieldByName(TypeParam::kType);
    google::protobuf::Message* message = report.GetReflection()->MutableMessage(&report, member);
    message->GetReflection()->ClearField(message, this->Message().FindFieldByName(dropped.name));
    const facts::Fact got = *FactOf(report);
    EXPECT_NE(Shown(std::get<TypeParam>(got)), Shown(Filled<TypeParam>())) << dropped.name;
  }
}

TEST(AttemptReportTest, EveryMemberOfTheReportIsAFact) {
  const auto* members = v1::AttemptReport::descriptor()->FindOneofByName("report");
  EXPECT_EQ(members->field_count(), static_cast<int>(std::variant_size_v<facts::Fact>));
}

TEST(AttemptReportTest, AReportWithoutContentIsNoFact) {
  v1::AttemptReport report;
  report.set_attempt(1);
  EXPECT_FALSE(FactOf(report).has_value());
}

TEST(AttemptReportTest, NumbersThatAreNotFiniteSurvive) {
  facts::Epoch epoch;
  epoch.val_loss = std::numeric_limits<double>::infinity();
  EXPECT_EQ(std::get<facts::Epoch>(*FactOf(ReportOf(1, epoch))).val_loss, epoch.val_loss);
}

TEST(AttemptReportTest, AnEndReasonOfANewerWorkerIsInternal) {
  v1::AttemptReport report;
  report.mutable_ended()->set_reason(static_cast<v1::AttemptEndReason>(99));
  EXPECT_EQ(std::get<facts::Ended>(*FactOf(report)).reason, AttemptEndReason::kInternal);
}

// An enum's names and numbers are told in common/facts/reasons.cc and in the proto files.
template <class E>
void ExpectSameEnum(const google::protobuf::EnumDescriptor& proto, const std::string& prefix) {
  E value{};
  const EnumField field(&value, NamesOf(value));
  ASSERT_EQ(proto.value_count(), field.count());
  for (int i = 1; i < proto.value_count(); ++i) {
    field.set_number(proto.value(i)->number());
    EXPECT_EQ(prefix + field.name(), proto.value(i)->name());
  }
}

TEST(ReasonsTest, NamesAndNumbersAreThoseOfTheProtoFiles) {
  ExpectSameEnum<AttemptEndReason>(*v1::AttemptEndReason_descriptor(), "ATTEMPT_END_REASON_");
  ExpectSameEnum<StopReason>(*v1::StopReason_descriptor(), "STOP_REASON_");
}

TEST(ProtoFieldsDeathTest, AFieldThatTheMessageLacksEndsTheProcess) {
  facts::Probe probe;
  v1::Ended message;
  EXPECT_DEATH(CopyToProto(probe.Fields(), message), "traind.v1.Ended has no field step_s");
}

}  // namespace
}  // namespace traind
