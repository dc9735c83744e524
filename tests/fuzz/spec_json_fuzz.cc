// Reads any bytes as the JSON of a spec, as traind stores it, and as Workers read it.
#include "common/plain/plain_json.h"
#include "common/spec/spec_rules.h"
#include "proto/plain/job.h"
#include "tests/fuzz/check.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace traind;
  const absl::string_view text = Bytes(data, size);
  if (const auto plain = plain::FromJson<plain::JobSpec>(text); plain.ok()) {
    const std::string written = plain::ToJson(*plain);
    const auto again = plain::FromJson<plain::JobSpec>(written);
    Check(again.ok() && plain::ToJson(*again) == written, "a Worker reads what it writes");
  }
  const auto spec = SpecFromJson(text);
  if (!spec.ok() || !CheckSpec(*spec).empty()) return 0;
  const v1::JobSpec resolved = ResolveSpec(*spec);
  const std::string json = SpecToJson(resolved);
  const auto again = SpecFromJson(json);
  Check(again.ok() && DifferingFields(*again, resolved).empty(), "a resolved spec survives JSON");
  Check(plain::FromJson<plain::JobSpec>(json).ok(), "a Worker reads an accepted spec");
  return 0;
}
