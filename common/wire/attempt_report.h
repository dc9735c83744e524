// The one conversion between facts about an Attempt and their Protobuf message: a fact of type
// `probe` is the member `probe` of AttemptReport, field by field.
// Threads: safe.
#pragma once

#include <optional>

#include "common/facts/facts.h"
#include "proto/worker_service.pb.h"

namespace traind {

v1::AttemptReport ReportOf(int64_t attempt, const facts::Fact& fact);
// nullopt: a fact that this program does not know, of a newer Worker. What it says is not
// checked.
std::optional<facts::Fact> FactOf(const v1::AttemptReport& report);

}  // namespace traind
