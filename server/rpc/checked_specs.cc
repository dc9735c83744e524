#include "server/rpc/checked_specs.h"

#include "common/base/durable_file.h"
#include "common/spec/spec_rules.h"

namespace traind {
namespace {

// A batch of entries that all differ keeps no more than these.
constexpr size_t kMostKept = 16;

}  // namespace

std::string CheckedTwins::AskedJson(absl::string_view name) {
  if (!asked_json_) asked_json_.emplace(*asked_);
  return asked_json_->For(name);
}

const CheckedSpec& CheckedTwins::For(const std::string& name) {
  if (checked_.spec.name == name) return checked_;
  if (!resolved_json_) resolved_json_.emplace(checked_.resolved);
  checked_.resolved.set_name(name);
  checked_.spec.name = name;
  checked_.json = resolved_json_->For(name);
  checked_.sha256 = Sha256Hex(checked_.json);
  return checked_;
}

std::string CheckedSpecs::KeyOf(const v1::JobSpec& spec) {
  const bool of_other_jobs = UsesModelsOfAnother(spec) || !spec.from().empty() || spec.has_after();
  if (of_other_jobs || !IsJobName(spec.name())) return "";
  v1::JobSpec nameless = spec;
  nameless.clear_name();
  // Maps may be written in another order; then a twin is checked once more.
  return nameless.SerializeAsString();
}

CheckedTwins* CheckedSpecs::Find(const std::string& key) {
  const auto found = known_.find(key);
  return found == known_.end() ? nullptr : found->second.get();
}

CheckedTwins* CheckedSpecs::Add(const std::string& key, const v1::JobSpec& asked,
                                CheckedSpec checked) {
  if (known_.size() >= kMostKept) known_.clear();
  auto& twins = known_[key];
  twins = std::make_unique<CheckedTwins>(&asked, std::move(checked));
  return twins.get();
}

}  // namespace traind
