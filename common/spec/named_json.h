// The canonical text of specs that differ in their names alone.
#pragma once

#include <absl/strings/string_view.h>

#include <string>

#include "proto/job.pb.h"

namespace traind {

// Whether this may be the name of a Job. It needs no escapes in JSON.
bool IsJobName(absl::string_view name);

// Threads: safe.
class NamedJson {
 public:
  explicit NamedJson(v1::JobSpec spec);
  // Returns SpecToJson of the spec with this name. REQUIRES: IsJobName(name).
  std::string For(absl::string_view name) const;

 private:
  std::string before_, after_;  // of the name
};

}  // namespace traind
