// Reads any bytes as a spec without harm; an accepted spec resolves to one that is accepted again
// and survives JSON.
#include <absl/strings/string_view.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "common/spec/spec_rules.h"
#include "common/spec/yaml_spec.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  traind::SpecReadOptions options;
  options.base_dir = "/base";
  options.now = absl::FromUnixSeconds(1000000000);
  const size_t split = text.find('\x1e');
  if (split != text.npos) {
    options.overrides.push_back({"--set", "data.train", std::string(text.substr(0, split))});
  }
  const traind::SpecReadResult result =
      traind::ReadSpec(split == text.npos ? text : text.substr(split + 1), options);
  if (!result.problems.empty()) return 0;
  const traind::v1::JobSpec resolved = traind::ResolveSpec(result.spec);
  const auto back = traind::SpecFromJson(traind::SpecToJson(resolved));
  if (!traind::CheckSpec(resolved).empty() || !back.ok() ||
      !traind::DifferingFields(*back, resolved).empty()) {
    std::fprintf(stderr, "accepted, yet: %s\n", resolved.DebugString().c_str());
    std::abort();
  }
  return 0;
}
