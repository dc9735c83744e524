// What a bucket answers, and parts of files that came compressed: read, or refused.
#include <cstdint>
#include <string>

#include "common/transfer/zstd_part.h"
#include "server/objects/s3_answers.h"
#include "tests/fuzz/check.h"

namespace {

using namespace traind;

constexpr size_t kMostPart = 4 << 20;

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string bytes(Bytes(data, size));
  if (const auto page = ParseS3Page(bytes); page.ok()) {
    for (const ObjectInfo& object : page->objects) {
      Check(!object.key.empty() && object.bytes >= 0, "an object has a key and a size");
      Check(object.md5.empty() || object.md5.size() == 32, "a digest is whole, or none");
    }
  }
  const std::string error = S3ErrorText(bytes);
  Check(error.find('\n') == error.npos && error.size() <= 300, "an error is one short line");
  if (const auto part = UnpackPart(bytes); part.ok()) {
    Check(part->size() <= kMostPart, "a part is no larger than parts may be");
    std::string again = *part;
    PartPacker packer;
    if (packer.Pack(again)) {
      const auto back = UnpackPart(again);
      Check(back.ok() && *back == *part, "what was compressed comes back");
    }
  }
  return 0;
}
