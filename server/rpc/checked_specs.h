// The specs of one batch that have been checked: entries that differ in their names alone share one
// check, one look at the disk and one canonical text.
#pragma once

#include <absl/container/flat_hash_map.h>
#include <absl/strings/string_view.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "common/spec/named_json.h"
#include "proto/job.pb.h"
#include "server/intake/intake.h"

namespace traind {

// A spec that was checked, and those that differ from it in the name alone.
// Threads: one at a time.
class CheckedTwins {
 public:
  // asked: as it came; it must outlive this object. checked: what its check gave.
  CheckedTwins(const v1::JobSpec* asked, CheckedSpec checked)
      : asked_(asked), checked_(std::move(checked)) {}

  // SpecToJson of the twin with this name, as it would have come.
  // REQUIRES: IsJobName(name), here and below.
  std::string AskedJson(absl::string_view name);
  // What the check of the twin with this name would give; valid until the next call.
  const CheckedSpec& For(const std::string& name);

 private:
  const v1::JobSpec* const asked_;
  CheckedSpec checked_;
  // Made when the first twin comes.
  std::optional<NamedJson> asked_json_, resolved_json_;
};

// Threads: one at a time.
class CheckedSpecs {
 public:
  // The key under which twins are found. Empty: the spec has none, because its name is wrong or
  // missing, or because its check depends on other Jobs.
  static std::string KeyOf(const v1::JobSpec& spec);

  // nullptr: none was checked. The result is valid until the next Add.
  CheckedTwins* Find(const std::string& key);
  // asked: must outlive this object. REQUIRES: the key is not empty.
  CheckedTwins* Add(const std::string& key, const v1::JobSpec& asked, CheckedSpec checked);

 private:
  absl::flat_hash_map<std::string, std::unique_ptr<CheckedTwins>> known_;
};

}  // namespace traind
