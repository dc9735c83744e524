// Reads any bytes as a tokenizer: the words of a vocabulary, or a SentencePiece model. The bytes
// behind the last 0xFE are a text to encode.
#include <vector>

#include "common/data/text/tokenizer.h"
#include "tests/fuzz/check.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace traind;
  const absl::string_view bytes = Bytes(data, size);
  const size_t cut = bytes.rfind('\xfe');
  const auto tokenizer = ParseTokenizer(bytes.substr(0, cut));
  if (!tokenizer.ok()) return 0;
  const absl::string_view given = cut == bytes.npos ? absl::string_view() : bytes.substr(cut + 1);
  for (const absl::string_view text :
       {given, absl::string_view("  the cat \xe2\x96\x81sat on\tthe \xf0\x9f\x90\xb1 mat.  "),
        absl::string_view("\xff\xe2\x96")}) {
    std::vector<int32_t> ids;
    (*tokenizer)->Encode(text, ids);
    for (const int32_t id : ids) Check(id >= 0 && id < (*tokenizer)->size(), "an id is in range");
  }
  const auto again = ParseTokenizer((*tokenizer)->Serialize());
  Check(again.ok() && (*again)->size() == (*tokenizer)->size(), "it is stored and read again");
  return 0;
}
