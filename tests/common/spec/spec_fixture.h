// The smallest valid spec, and the errors of another one.
#pragma once

#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>

#include <string>

#include "common/spec/spec_rules.h"

namespace traind {

inline v1::JobSpec GoodSpec() {
  v1::JobSpec spec;
  spec.set_api("v1");
  spec.mutable_task()->set_type("classification");
  spec.mutable_data()->set_train("/data/train.csv");
  spec.mutable_data()->set_target("y");
  return spec;
}

inline std::string Errors(const v1::JobSpec& spec) {
  return absl::StrJoin(CheckSpec(spec), "\n", [](std::string* out, const SpecError& error) {
    absl::StrAppend(out, error.field_path, ": ", error.message);
  });
}

}  // namespace traind
