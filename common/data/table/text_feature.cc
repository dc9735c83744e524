#include "common/data/table/text_feature.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/strip.h>

namespace traind {
namespace {

constexpr absl::string_view kNumber = "number", kLength = "length", kWord = "word.";

}  // namespace

std::string TextFeatureName(const TextFeature& part) {
  switch (part.kind) {
    case TextFeature::Kind::kNumber:
      return part.index == 0 ? std::string(kNumber) : absl::StrCat(kNumber, part.index + 1);
    case TextFeature::Kind::kLength:
      return std::string(kLength);
    case TextFeature::Kind::kWord:
      return absl::StrCat(kWord, part.word);
    case TextFeature::Kind::kNone:
      break;
  }
  return "";
}

bool ParseTextFeature(absl::string_view name, TextFeature& part) {
  part = {};
  if (name == kLength) {
    part.kind = TextFeature::Kind::kLength;
    return true;
  }
  if (absl::ConsumePrefix(&name, kWord)) {
    part.kind = TextFeature::Kind::kWord;
    part.word = std::string(name);
    return !name.empty();
  }
  if (!absl::ConsumePrefix(&name, kNumber)) return false;
  part.kind = TextFeature::Kind::kNumber;
  for (int i = 1; i < kTextNumbers; ++i) {
    if (name == absl::StrCat(i + 1)) part.index = i;
  }
  return name.empty() || part.index > 0;
}

}  // namespace traind
