#include "common/table/csv.h"

#include <absl/strings/ascii.h>
#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include <array>
#include <set>
#include <utility>

#include "common/status_macros.h"

namespace traind {
namespace {

constexpr absl::string_view kUtf8Mark = "\xef\xbb\xbf";

// Bytes that end the quick scan of an unquoted field.
std::array<bool, 256> StopBytes(char delimiter) {
  std::array<bool, 256> stops{};
  for (const char c : {delimiter, '\n', '\r', '\0'}) stops[static_cast<unsigned char>(c)] = true;
  return stops;
}

// The first byte at or after p that ends an unquoted field, or end.
const char* FindStop(const char* p, const char* end, char delimiter,
                     const std::array<bool, 256>& stops) {
#ifdef __SSE2__
  const __m128i delimiters = _mm_set1_epi8(delimiter);
  const __m128i newlines = _mm_set1_epi8('\n');
  const __m128i returns = _mm_set1_epi8('\r');
  const __m128i zeros = _mm_setzero_si128();
  for (; end - p >= 16; p += 16) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    const __m128i found = _mm_or_si128(
        _mm_or_si128(_mm_cmpeq_epi8(bytes, delimiters), _mm_cmpeq_epi8(bytes, newlines)),
        _mm_or_si128(_mm_cmpeq_epi8(bytes, returns), _mm_cmpeq_epi8(bytes, zeros)));
    const int mask = _mm_movemask_epi8(found);
    if (mask != 0) return p + __builtin_ctz(static_cast<unsigned>(mask));
  }
#else
  (void)delimiter;
#endif
  while (p < end && !stops[static_cast<unsigned char>(*p)]) ++p;
  return p;
}

bool IsBlank(char c) { return c == ' ' || c == '\t'; }

absl::string_view StripBlanks(absl::string_view text) {
  while (!text.empty() && IsBlank(text.front())) text.remove_prefix(1);
  while (!text.empty() && IsBlank(text.back())) text.remove_suffix(1);
  return text;
}

std::string Plural(size_t n, absl::string_view noun) {
  return absl::StrCat(n, " ", noun, n == 1 ? "" : "s");
}

}  // namespace

CsvReader::CsvReader(absl::string_view bytes, std::string name, char delimiter)
    : bytes_(bytes), name_(std::move(name)), delimiter_(delimiter), stops_(StopBytes(delimiter)) {
  if (absl::StartsWith(bytes_, kUtf8Mark)) at_ = kUtf8Mark.size();
}

absl::Status CsvReader::Error(absl::string_view what) const {
  return absl::InvalidArgumentError(absl::StrCat(name_, ": row ", rows_, " (line ", row_line_,
                                                 "), column ", fields_.size() + 1, ": ", what));
}

absl::StatusOr<bool> CsvReader::Next() {
  fields_.clear();
  quoted_.clear();
  unescaped_.clear();
  // Blank lines are no rows.
  while (at_ < bytes_.size() && (bytes_[at_] == '\n' || bytes_[at_] == '\r')) {
    if (bytes_[at_] == '\n') ++line_;
    ++at_;
  }
  if (at_ >= bytes_.size()) return false;
  row_line_ = line_;
  while (true) {
    RETURN_IF_ERROR(Field());
    if (at_ >= bytes_.size()) break;
    const char end = bytes_[at_++];
    if (end == delimiter_) continue;
    if (end == '\r' && at_ < bytes_.size() && bytes_[at_] == '\n') ++at_;
    ++line_;
    break;
  }
  ++rows_;
  return true;
}

// Leaves at_ on the delimiter or line end behind the field, or at the end.
absl::Status CsvReader::Field() {
  const char* const begin = bytes_.data() + at_;
  const char* const end = bytes_.data() + bytes_.size();
  const char* p = begin;
  while (p < end && IsBlank(*p) && *p != delimiter_) ++p;
  if (p < end && *p == '"') {
    at_ = p - bytes_.data();
    return QuotedField();
  }
  p = FindStop(p, end, delimiter_, stops_);
  if (p < end && *p == '\0')
    return Error("a zero byte: this is no text (or UTF-16; save as UTF-8)");
  at_ = p - bytes_.data();
  fields_.push_back(StripBlanks(absl::string_view(begin, p - begin)));
  quoted_.push_back(false);
  return absl::OkStatus();
}

absl::Status CsvReader::QuotedField() {
  const size_t open = ++at_;
  bool doubled = false;
  while (true) {
    const void* const quote = memchr(bytes_.data() + at_, '"', bytes_.size() - at_);
    if (quote == nullptr) return Error("a quote that is never closed");
    at_ = static_cast<const char*>(quote) - bytes_.data() + 1;
    if (at_ >= bytes_.size() || bytes_[at_] != '"') break;
    doubled = true;
    ++at_;
  }
  const absl::string_view text = bytes_.substr(open, at_ - 1 - open);
  for (const char c : text) {
    if (c == '\n') ++line_;
    if (c == '\0') return Error("a zero byte: this is no text (or UTF-16; save as UTF-8)");
  }
  while (at_ < bytes_.size() && IsBlank(bytes_[at_]) && bytes_[at_] != delimiter_) ++at_;
  if (at_ < bytes_.size() && !stops_[static_cast<unsigned char>(bytes_[at_])]) {
    return Error(absl::StrCat("'", std::string(1, bytes_[at_]), "' after a closing quote"));
  }
  if (!doubled) {
    fields_.push_back(text);
  } else {
    std::string plain;
    plain.reserve(text.size());
    for (size_t i = 0; i < text.size(); ++i) {
      plain += text[i];
      if (text[i] == '"') ++i;
    }
    unescaped_.push_back(std::make_unique<std::string>(std::move(plain)));
    fields_.push_back(*unescaped_.back());
  }
  quoted_.push_back(true);
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::string>> ReadCsvHeader(absl::string_view bytes,
                                                       const std::string& name) {
  if (bytes.empty()) return absl::InvalidArgumentError(absl::StrCat(name, ": the file is empty"));
  if (absl::StartsWith(bytes, "\xff\xfe") || absl::StartsWith(bytes, "\xfe\xff")) {
    return absl::InvalidArgumentError(absl::StrCat(name, ": the file is UTF-16; save it as UTF-8"));
  }
  if (absl::StartsWith(bytes, "\x1f\x8b")) {
    return absl::InvalidArgumentError(absl::StrCat(name, ": the file is compressed (gzip)"));
  }
  CsvReader reader(bytes, name);
  ASSIGN_OR_RETURN(const bool any, reader.Next());
  if (!any) return absl::InvalidArgumentError(absl::StrCat(name, ": the file has no header row"));
  std::vector<std::string> header;
  std::set<std::string> seen;
  for (const absl::string_view field : reader.fields()) {
    for (const char c : field) {
      if (absl::ascii_iscntrl(c) && c != '\t' && c != '\n' && c != '\r') {
        return absl::InvalidArgumentError(
            absl::StrCat(name, ": column ", header.size() + 1,
                         " of the header holds a control byte: this is no text file"));
      }
    }
    if (field.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat(name, ": column ", header.size() + 1, " of the header has no name"));
    }
    if (!seen.insert(std::string(field)).second) {
      return absl::InvalidArgumentError(
          absl::StrCat(name, ": two columns are called '", field, "'"));
    }
    header.emplace_back(field);
  }
  return header;
}

absl::Status RaggedRow(const std::string& name, int64_t row, int64_t line, size_t fields,
                       const std::vector<std::string>& header) {
  const std::string place =
      fields < header.size()
          ? absl::StrCat("column ", fields + 1, " ('", header[fields], "') is missing")
          : absl::StrCat("column ", header.size() + 1, " is one too many");
  return absl::InvalidArgumentError(absl::StrCat(name, ": row ", row, " (line ", line, ") has ",
                                                 Plural(fields, "field"), ", the header has ",
                                                 header.size(), ": ", place));
}

absl::StatusOr<CsvSample> CheckCsvSample(absl::string_view bytes, bool whole_file,
                                         const std::string& name) {
  CsvSample sample;
  sample.whole_file = whole_file;
  ASSIGN_OR_RETURN(sample.header, ReadCsvHeader(bytes, name));
  CsvReader reader(bytes, name);
  RETURN_IF_ERROR(reader.Next().status());
  while (true) {
    const absl::StatusOr<bool> next = reader.Next();
    // Whatever the end of a part cuts - a row, a quoted field - is not judged.
    const bool cut =
        !whole_file && (!next.ok() ? absl::StrContains(next.status().message(), "never closed")
                                   : reader.position() >= bytes.size());
    if (cut) break;
    RETURN_IF_ERROR(next.status());
    if (!*next) break;
    if (reader.fields().size() != sample.header.size()) {
      return RaggedRow(name, sample.rows + 1, reader.line(), reader.fields().size(), sample.header);
    }
    ++sample.rows;
  }
  if (whole_file && sample.rows == 0) {
    return absl::InvalidArgumentError(absl::StrCat(name, ": the file has a header and no rows"));
  }
  return sample;
}

bool IsMissing(absl::string_view text) {
  if (text.empty() || text == "?") return true;
  if (text.size() > 4) return false;
  for (const absl::string_view word : {"na", "n/a", "nan", "null", "none"}) {
    if (absl::EqualsIgnoreCase(text, word)) return true;
  }
  return false;
}

}  // namespace traind
