#include "common/data/table/csv.h"

#include <absl/strings/ascii.h>
#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/strip.h>
#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include <array>
#include <map>
#include <set>
#include <utility>

#include "common/base/status_macros.h"
#include "common/data/table/other_formats.h"

namespace traind {
namespace {

constexpr absl::string_view kUtf8Mark = "\xef\xbb\xbf";
constexpr absl::string_view kSeparator = "sep=";

// The bytes that end the quick scan of an unquoted field.
std::array<bool, 256> StopBytes(char delimiter) {
  std::array<bool, 256> stops{};
  for (const char c : {delimiter, '\n', '\r', '\0'}) stops[static_cast<unsigned char>(c)] = true;
  return stops;
}

constexpr size_t kWindow = 64;

#ifdef __SSE2__
uint32_t StopsOf16(const char* p, char delimiter) {
  const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  const __m128i found = _mm_or_si128(_mm_or_si128(_mm_cmpeq_epi8(bytes, _mm_set1_epi8(delimiter)),
                                                  _mm_cmpeq_epi8(bytes, _mm_set1_epi8('\n'))),
                                     _mm_or_si128(_mm_cmpeq_epi8(bytes, _mm_set1_epi8('\r')),
                                                  _mm_cmpeq_epi8(bytes, _mm_setzero_si128())));
  return static_cast<uint32_t>(_mm_movemask_epi8(found));
}
#endif

// Returns a bit for each of 64 bytes, set where the byte ends an unquoted field.
uint64_t StopsOf64(const char* p, char delimiter, const std::array<bool, 256>& stops) {
#ifdef __SSE2__
  (void)stops;
  return StopsOf16(p, delimiter) | static_cast<uint64_t>(StopsOf16(p + 16, delimiter)) << 16 |
         static_cast<uint64_t>(StopsOf16(p + 32, delimiter)) << 32 |
         static_cast<uint64_t>(StopsOf16(p + 48, delimiter)) << 48;
#else
  (void)delimiter;
  uint64_t found = 0;
  for (size_t i = 0; i < kWindow; ++i) {
    found |= static_cast<uint64_t>(stops[static_cast<unsigned char>(p[i])]) << i;
  }
  return found;
#endif
}

bool IsBlank(char c) { return c == ' ' || c == '\t'; }

// The length of a first line such as `sep=;`, by which Excel tells the delimiter; 0: there is none.
size_t SeparatorLine(absl::string_view bytes) {
  const size_t end = kSeparator.size() + 1;
  if (!absl::StartsWithIgnoreCase(bytes, kSeparator) || bytes.size() <= end) return 0;
  if (absl::StrContains("\r\n\"", bytes[kSeparator.size()])) return 0;
  if (absl::StartsWith(bytes.substr(end), "\r\n")) return end + 2;
  return bytes[end] == '\n' || bytes[end] == '\r' ? end + 1 : 0;
}

std::string Plural(size_t n, absl::string_view noun) {
  return absl::StrCat(n, " ", noun, n == 1 ? "" : "s");
}

}  // namespace

void CsvRows::Append(std::string text, const std::vector<size_t>& ends, size_t columns,
                     int64_t line) {
  unescaped_.push_back(std::move(text));
  const absl::string_view all = unescaped_.back();
  size_t begin = 0;
  for (const size_t end : ends) {
    fields_.push_back(all.substr(begin, end - begin));
    begin = end;
  }
  for (size_t row = 0; row < ends.size() / columns; ++row) lines_.push_back(line++);
}

CsvReader::CsvReader(absl::string_view bytes, std::string name, char delimiter, CsvPlace from)
    : bytes_(bytes),
      name_(std::move(name)),
      delimiter_(delimiter),
      stops_(StopBytes(delimiter)),
      at_(from.at),
      rows_(from.rows),
      line_(from.line) {
  if (at_ > 0) return;
  if (absl::StartsWith(bytes_, kUtf8Mark)) at_ = kUtf8Mark.size();
  const size_t separator_line = SeparatorLine(bytes_.substr(at_));
  at_ += separator_line;
  line_ += separator_line > 0;
}

absl::Status CsvReader::Error(absl::string_view what, size_t column) const {
  return absl::InvalidArgumentError(absl::StrCat(name_, ": row ", rows_, " (line ", row_line_,
                                                 "), column ", column + 1, ": ", what));
}

absl::StatusOr<bool> CsvReader::Next() {
  row_.Clear();
  return AddRow(bytes_.size(), row_);
}

absl::Status CsvReader::NextRows(const std::vector<std::string>& header, size_t stop,
                                 size_t max_rows, CsvRows& rows) {
  while (rows.rows() < max_rows) {
    const size_t before = rows.fields_.size();
    const absl::StatusOr<bool> any = AddRow(stop, rows);
    const size_t fields = rows.fields_.size() - before;
    if (any.ok() && !*any) break;
    if (any.ok() && fields == header.size()) continue;
    rows.fields_.resize(before);
    rows.lines_.resize(header.empty() ? 0 : before / header.size());
    return any.ok() ? RaggedRow(name_, rows_ - 1, row_line_, fields, header) : any.status();
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> CsvReader::AddRow(size_t stop, CsvRows& rows) {
  // Empty lines and lines of blanks do not count as rows.
  while (at_ < stop && (bytes_[at_] == '\n' || bytes_[at_] == '\r' || bytes_[at_] == ' ')) {
    const size_t end = std::min(bytes_.find_first_not_of(' ', at_), bytes_.size());
    if (end < bytes_.size() && bytes_[end] != '\n' && bytes_[end] != '\r') break;
    if (end < bytes_.size() && bytes_[end] == '\n') ++line_;
    at_ = std::min(end + 1, bytes_.size());
  }
  if (at_ >= stop) return false;
  row_line_ = line_;
  const size_t first = rows.fields_.size();
  while (true) {
    // A field without quotes and surrounding blanks takes the fast path.
    const size_t stop = FindStop(at_);
    const char* const field = bytes_.data() + at_;
    const size_t size = stop - at_;
    if (stop < bytes_.size() && bytes_[stop] != '\0' &&
        (size == 0 || (field[0] > '"' && field[size - 1] > ' '))) {
      rows.fields_.emplace_back(field, size);
      at_ = stop;
    } else {
      RETURN_IF_ERROR(AddField(rows, first));
      if (at_ >= bytes_.size()) break;
    }
    const char end = bytes_[at_++];
    if (end == delimiter_) continue;
    if (end == '\r' && at_ < bytes_.size() && bytes_[at_] == '\n') ++at_;
    ++line_;
    break;
  }
  rows.lines_.push_back(row_line_);
  ++rows_;
  return true;
}

// Returns the position of the first byte at or after `from` that ends an unquoted field, or the
// end.
inline size_t CsvReader::FindStop(size_t from) {
  const size_t seen = from - window_at_;
  if (seen < kWindow) {
    const uint64_t stops = window_stops_ & (~uint64_t{0} << seen);
    if (stops != 0) return window_at_ + static_cast<size_t>(__builtin_ctzll(stops));
    from = window_at_ + kWindow;
  }
  for (; from + kWindow <= bytes_.size(); from += kWindow) {
    const uint64_t stops = StopsOf64(bytes_.data() + from, delimiter_, stops_);
    if (stops == 0) continue;
    window_at_ = from;
    window_stops_ = stops;
    return from + static_cast<size_t>(__builtin_ctzll(stops));
  }
  while (from < bytes_.size() && !stops_[static_cast<unsigned char>(bytes_[from])]) ++from;
  return from;
}

// Leaves at_ on the delimiter or line end behind the field, or at the end.
absl::Status CsvReader::AddField(CsvRows& rows, size_t first) {
  const char* const data = bytes_.data();
  size_t p = at_;
  while (p < bytes_.size() && IsBlank(data[p]) && data[p] != delimiter_) ++p;
  if (p < bytes_.size() && data[p] == '"') {
    at_ = p;
    return AddQuotedField(rows, first);
  }
  const size_t end = FindStop(p);
  if (end < bytes_.size() && data[end] == '\0') {
    return Error("a zero byte: this is not text (or it is UTF-16; save it as UTF-8)",
                 rows.fields_.size() - first);
  }
  at_ = end;
  size_t last = end;
  while (last > p && IsBlank(data[last - 1])) --last;
  rows.fields_.emplace_back(data + p, last - p);
  return absl::OkStatus();
}

absl::Status CsvReader::AddQuotedField(CsvRows& rows, size_t first) {
  const size_t column = rows.fields_.size() - first;
  const size_t open = ++at_;
  bool doubled = false;
  while (true) {
    const void* const quote = memchr(bytes_.data() + at_, '"', bytes_.size() - at_);
    if (quote == nullptr) {
      ends_in_quotes_ = true;
      return Error("a quote that is never closed", column);
    }
    at_ = static_cast<size_t>(static_cast<const char*>(quote) - bytes_.data()) + 1;
    if (at_ >= bytes_.size() || bytes_[at_] != '"') break;
    doubled = true;
    ++at_;
  }
  const absl::string_view text = bytes_.substr(open, at_ - 1 - open);
  for (const char c : text) {
    if (c == '\n') ++line_;
    if (c == '\0') {
      return Error("a zero byte: this is not text (or it is UTF-16; save it as UTF-8)", column);
    }
  }
  while (at_ < bytes_.size() && IsBlank(bytes_[at_]) && bytes_[at_] != delimiter_) ++at_;
  if (at_ < bytes_.size() && !stops_[static_cast<unsigned char>(bytes_[at_])]) {
    return Error(absl::StrCat("'", std::string(1, bytes_[at_]), "' after a closing quote"), column);
  }
  if (!doubled) {
    rows.fields_.push_back(text);
    return absl::OkStatus();
  }
  std::string plain;
  plain.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    plain += text[i];
    if (text[i] == '"') ++i;
  }
  rows.unescaped_.push_back(std::move(plain));
  rows.fields_.push_back(rows.unescaped_.back());
  return absl::OkStatus();
}

std::string CsvField(absl::string_view text) {
  const bool blank_edge = !text.empty() && (text.front() == ' ' || text.front() == '\t' ||
                                            text.back() == ' ' || text.back() == '\t');
  if (!blank_edge && text.find_first_of(",\"\r\n") == absl::string_view::npos) {
    return std::string(text);
  }
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"') quoted.push_back('"');
    quoted.push_back(c);
  }
  quoted.push_back('"');
  return quoted;
}

namespace {

// The number of fields in the first rows, if they have as many as the header and more than one;
// else 0.
size_t FieldsOf(absl::string_view bytes, char delimiter) {
  constexpr size_t kLookBytes = 64 << 10;
  constexpr int kLookRows = 5;
  const bool cut = bytes.size() > kLookBytes;
  CsvReader reader(bytes.substr(0, kLookBytes), "", delimiter);
  size_t fields = 0;
  for (int row = 0; row <= kLookRows; ++row) {
    const absl::StatusOr<bool> any = reader.Next();
    if (cut && row > 0 && reader.position() >= kLookBytes) break;
    if (!any.ok()) return 0;
    if (!*any) break;
    if (row == 0) fields = reader.fields().size();
    if (reader.fields().size() != fields) return 0;
  }
  return fields > 1 ? fields : 0;
}

}  // namespace

char DelimiterOf(absl::string_view bytes, absl::string_view name) {
  absl::ConsumePrefix(&bytes, kUtf8Mark);
  if (SeparatorLine(bytes) > 0) return bytes[kSeparator.size()];
  if (absl::EndsWithIgnoreCase(name, ".gz")) name.remove_suffix(3);
  if (absl::EndsWithIgnoreCase(name, ".tsv") || absl::EndsWithIgnoreCase(name, ".tab")) {
    return '\t';
  }
  bytes.remove_prefix(std::min(bytes.find_first_not_of("\r\n"), bytes.size()));
  const absl::string_view line = bytes.substr(0, bytes.find_first_of("\r\n"));
  char first = '\0', best = '\0';
  size_t most = 0;  // fields of the best one
  for (const char delimiter : {',', '\t', ';', '|'}) {
    if (first == '\0' && line.find(delimiter) != line.npos) first = delimiter;
    const size_t fields = FieldsOf(bytes, delimiter);
    if (fields > most) {
      best = delimiter;
      most = fields;
    }
  }
  if (most > 0) return best;
  return first == '\0' ? ',' : first;
}

std::string UnnamedColumn(size_t column) { return absl::StrCat("unnamed: ", column); }

namespace {

// Gives other names to the columns whose name a column before them has.
void RenameRepeated(std::vector<std::string>& header, std::vector<std::string>& repeated) {
  std::set<std::string> names(header.begin(), header.end()), seen;
  std::map<std::string, int> counts;
  for (std::string& column : header) {
    if (seen.insert(column).second) continue;
    int& count = counts[column];
    if (count == 0) repeated.push_back(column);
    std::string other;
    do {
      other = absl::StrCat(column, ".", ++count);
    } while (!names.insert(other).second);
    column = other;
  }
}

}  // namespace

absl::Status RepeatedColumn(const std::string& name, absl::string_view column) {
  return absl::InvalidArgumentError(absl::StrCat(name, ": two columns are called '", column, "'"));
}

absl::StatusOr<std::vector<std::string>> ReadCsvHeader(absl::string_view bytes,
                                                       const std::string& name,
                                                       std::vector<std::string>* repeated) {
  if (bytes.empty()) return absl::InvalidArgumentError(absl::StrCat(name, ": the file is empty"));
  RETURN_IF_ERROR(RefuseOtherFormats(bytes, name));
  if (IsParquet(bytes)) {
    return absl::InvalidArgumentError(absl::StrCat(name, ": this is a Parquet table, not CSV"));
  }
  CsvReader reader(bytes, name, DelimiterOf(bytes, name));
  ASSIGN_OR_RETURN(const bool any, reader.Next());
  if (!any) return absl::InvalidArgumentError(absl::StrCat(name, ": the file has no header row"));
  std::vector<std::string> header;
  std::set<std::string> seen;
  for (const absl::string_view field : reader.fields()) {
    for (const char c : field) {
      if (absl::ascii_iscntrl(c) && c != '\t' && c != '\n' && c != '\r') {
        return absl::InvalidArgumentError(
            absl::StrCat(name, ": column ", header.size() + 1,
                         " of the header holds a control byte: this is not a text file"));
      }
    }
    const std::string column = field.empty() ? UnnamedColumn(header.size()) : std::string(field);
    if (!seen.insert(column).second && repeated == nullptr) return RepeatedColumn(name, column);
    header.push_back(column);
  }
  if (repeated != nullptr) RenameRepeated(header, *repeated);
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
  ASSIGN_OR_RETURN(sample.header, ReadCsvHeader(bytes, name, &sample.repeated));
  CsvReader reader(bytes, name, DelimiterOf(bytes, name));
  RETURN_IF_ERROR(reader.Next().status());
  while (true) {
    const absl::StatusOr<bool> next = reader.Next();
    // A row or a quoted field that the end of the part cuts is ignored.
    const bool cut =
        !whole_file && (next.ok() ? reader.position() >= bytes.size() : reader.ends_in_quotes());
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
  if (text.size() > 7) return false;
  for (const absl::string_view word :
       {"na", "n/a", "nan", "null", "none", "<na>", "-nan", "#n/a", "#na", "#null!", "#div/0!",
        "#value!", "#ref!", "#name?", "#num!"}) {
    if (absl::EqualsIgnoreCase(text, word)) return true;
  }
  return false;
}

bool IsMissingNumber(absl::string_view text) {
  constexpr size_t kLongest = 3;  // a dash of UTF-8, or three
  if (IsMissing(text)) return true;
  if (text.size() > kLongest) return false;
  return text == "\u2013" || text == "\u2014" || text.find_first_not_of('-') == text.npos ||
         text.find_first_not_of('.') == text.npos;
}

}  // namespace traind
