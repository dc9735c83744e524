#include "common/wire/attempt_report.h"

#include <utility>

#include "common/wire/proto_fields.h"

namespace traind {
namespace {

using google::protobuf::FieldDescriptor;

const FieldDescriptor* MemberFor(const char* type) {
  return v1::AttemptReport::descriptor()->FindFieldByName(type);
}

// Looks for the alternative of facts::Fact that is called `type`, from the I-th on.
template <size_t I = 0>
std::optional<facts::Fact> EmptyFact(const std::string& type) {
  if constexpr (I == std::variant_size_v<facts::Fact>) {
    return std::nullopt;
  } else {
    using M = std::variant_alternative_t<I, facts::Fact>;
    if (type == M::kType) return facts::Fact(M{});
    return EmptyFact<I + 1>(type);
  }
}

}  // namespace

v1::AttemptReport ReportOf(int64_t attempt, const facts::Fact& fact) {
  v1::AttemptReport report;
  report.set_attempt(attempt);
  std::visit(
      [&report](const auto& f) {
        CopyToProto(ReadableFields(f),
                    *report.GetReflection()->MutableMessage(&report, MemberFor(f.kType)));
      },
      fact);
  return report;
}

std::optional<facts::Fact> FactOf(const v1::AttemptReport& report) {
  const FieldDescriptor* member = report.GetReflection()->GetOneofFieldDescriptor(
      report, v1::AttemptReport::descriptor()->FindOneofByName("report"));
  if (member == nullptr) return std::nullopt;
  std::optional<facts::Fact> fact = EmptyFact(member->name());
  if (!fact) return std::nullopt;
  const google::protobuf::Message& message = report.GetReflection()->GetMessage(report, member);
  std::visit([&message](auto& f) { CopyFromProto(message, f.Fields()); }, *fact);
  return fact;
}

}  // namespace traind
