#include "server/objects/s3_answers.h"

#include <absl/strings/escaping.h>
#include <absl/strings/match.h>
#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_replace.h>
#include <absl/strings/strip.h>

#include <algorithm>

namespace traind {
namespace {

constexpr size_t kMd5Digits = 32;
constexpr size_t kMostErrorText = 300;

bool IsHex(char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); }

int HexValue(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  c = static_cast<char>(c | 0x20);
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

std::string UrlDecoded(absl::string_view text) {
  std::string decoded;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool escape = text[i] == '%' && i + 2 < text.size() && HexValue(text[i + 1]) >= 0 &&
                        HexValue(text[i + 2]) >= 0;
    if (escape) {
      decoded += static_cast<char>(HexValue(text[i + 1]) * 16 + HexValue(text[i + 2]));
      i += 2;
    } else {
      decoded += text[i] == '+' ? ' ' : text[i];
    }
  }
  return decoded;
}

// Takes what is before <tag>...</tag> and the tag off the text, and returns what is in it.
bool TakeBlock(absl::string_view* xml, absl::string_view tag, absl::string_view* inside) {
  const std::string begin = absl::StrCat("<", tag, ">"), end = absl::StrCat("</", tag, ">");
  const size_t from = xml->find(begin);
  if (from == xml->npos) return false;
  const size_t to = xml->find(end, from);
  if (to == xml->npos) return false;
  *inside = xml->substr(from + begin.size(), to - from - begin.size());
  xml->remove_prefix(to + end.size());
  return true;
}

}  // namespace

std::string S3Text(absl::string_view xml, absl::string_view tag) {
  absl::string_view inside;
  if (!TakeBlock(&xml, tag, &inside)) return "";
  // An entity's own sign comes last, so that none is made of two.
  return absl::StrReplaceAll(
      absl::StrReplaceAll(
          inside,
          {{"&quot;", "\""}, {"&#34;", "\""}, {"&apos;", "'"}, {"&lt;", "<"}, {"&gt;", ">"}}),
      {{"&amp;", "&"}});
}

std::string S3ErrorText(absl::string_view xml) {
  const std::string code = S3Text(xml, "Code");
  if (code.empty()) return "";
  std::string text = absl::StrCat(code, ": ", S3Text(xml, "Message"));
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < ' ') c = ' ';
  }
  return text.substr(0, kMostErrorText);
}

absl::StatusOr<S3Page> ParseS3Page(absl::string_view xml) {
  const absl::Status wrong = absl::UnavailableError("the store's list cannot be read");
  if (!absl::StrContains(xml, "<ListBucketResult") ||
      !absl::StrContains(xml, "</ListBucketResult>")) {
    return wrong;
  }
  S3Page page;
  if (S3Text(xml, "IsTruncated") == "true") {
    page.next = S3Text(xml, "NextContinuationToken");
    if (page.next.empty()) return wrong;
  }
  absl::string_view rest = xml, inside;
  while (TakeBlock(&rest, "Contents", &inside)) {
    ObjectInfo object;
    object.key = UrlDecoded(S3Text(inside, "Key"));
    if (object.key.empty() || !absl::SimpleAtoi(S3Text(inside, "Size"), &object.bytes) ||
        object.bytes < 0) {
      return wrong;
    }
    const std::string tag = S3Text(inside, "ETag");
    absl::string_view md5 = tag;
    absl::ConsumePrefix(&md5, "\"");
    absl::ConsumeSuffix(&md5, "\"");
    // Of an object that came in parts, or is encrypted by a key, it is another text.
    if (md5.size() == kMd5Digits && std::all_of(md5.begin(), md5.end(), IsHex)) {
      object.md5 = std::string(md5);
    }
    page.objects.push_back(std::move(object));
  }
  return page;
}

}  // namespace traind
