// Reads any bytes as a checkpoint's manifest: as they are, and with the digest that its writer
// would have given them.
#include <nlohmann/json.hpp>
#include <string>

#include "common/base/durable_file.h"
#include "common/base/json_text.h"
#include "tests/fuzz/check.h"
#include "worker/checkpoint/checkpoint_manifest.h"

namespace {

using Json = nlohmann::ordered_json;

std::string WithItsDigest(absl::string_view text) {
  constexpr auto kReplace = Json::error_handler_t::replace;
  Json json = Json::parse(text.begin(), text.end(), nullptr, false);
  if (!json.is_object() || traind::NestedDeeper(text, 100)) return std::string(text);
  json.erase("manifest_sha256");
  json["manifest_sha256"] = traind::Sha256Hex(json.dump(-1, ' ', false, kReplace));
  return json.dump(1, ' ', false, kReplace) + "\n";
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace traind;
  const std::string text(Bytes(data, size));
  if (const auto fields = DecodeFields(text); fields.ok()) {
    const std::string written = EncodeFields(*fields);
    const auto again = DecodeFields(written);
    Check(again.ok() && EncodeFields(*again) == written, "the fields survive JSON");
  }
  for (const std::string& manifest : {text, WithItsDigest(text)}) {
    const auto read = DecodeManifest(manifest, "checkpoint-1.json");
    if (!read.ok()) {
      Check(absl::IsDataLoss(read.status()), "a damaged manifest is a loss of data");
      continue;
    }
    Check(read->fields.batch >= 1 && read->fields.world_size >= 1, "there are rows and ranks");
    Check(read->fields.step >= 0 && read->tensors.bytes >= 0, "counts are not negative");
  }
  return 0;
}
