#pragma once

#include <absl/strings/string_view.h>

namespace traind {

// A key at the top of a spec that stands for a field of a section: `budget: 60s` is
// `budget: {time: 60s}`, and `target: price` is `data: {target: price}`.
struct ShortForm {
  absl::string_view key;
  absl::string_view section, field;
};
inline constexpr ShortForm kShortForms[] = {
    {"data", "data", "train"},    {"test", "data", "test"},           {"target", "data", "target"},
    {"id", "data", "id"},         {"task", "task", "type"},           {"metric", "task", "metric"},
    {"budget", "budget", "time"}, {"deadline", "budget", "deadline"}, {"after", "after", "jobs"},
};

}  // namespace traind
