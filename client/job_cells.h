// Texts that tables and paragraphs about Jobs share.
// Threads: safe, pure.
#pragma once

#include <absl/strings/str_cat.h>
#include <absl/strings/string_view.h>
#include <absl/time/time.h>
#include <google/protobuf/duration.pb.h>

#include <string>

#include "common/spec/field_text.h"
#include "proto/job.pb.h"

namespace traind {

// Returns "BUDGET_REACHED" and the like without their prefix; empty: the value that says nothing.
template <typename Enum>
std::string Word(Enum value) {
  const auto* found = google::protobuf::GetEnumDescriptor<Enum>()->FindValueByNumber(value);
  if (found == nullptr) return absl::StrCat(static_cast<int>(value));
  return value == 0 ? "" : EnumWord(*found);
}

// Returns "1m 30s".
std::string ShortDuration(const google::protobuf::Duration& duration);
std::string Seconds(double seconds);

// ": 4 GPUs on one host; 2 free; expected 12:40:00".
std::string LacksText(const v1::Job& job, absl::Time now);

// Returns the share of the rows that an epoch uses, if it is not all.
std::string RowsText(const v1::Plan& plan);

// Appends a line of a paragraph: a name in a column of its own, and its value.
void AddLine(std::string& text, absl::string_view name, absl::string_view value);

}  // namespace traind
