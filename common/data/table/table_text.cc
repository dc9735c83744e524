#include "common/data/table/table_text.h"

#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>

#include <algorithm>
#include <utility>

#include "common/base/status_macros.h"
#include "common/data/table/array_file.h"
#include "common/data/table/csv.h"
#include "common/data/table/other_formats.h"
#include "common/data/table/packed_table.h"
#include "common/data/table/text_encoding.h"

namespace traind {
namespace {

constexpr size_t kPiece = 1 << 18;

bool MayBeText(absl::string_view bytes) { return !IsArrayFile(bytes) && !IsSpreadsheet(bytes); }

bool NeedsDecoding(TextEncoding encoding) {
  return encoding != TextEncoding::kUtf8 && encoding != TextEncoding::kUnknown;
}

absl::Status CheckUnpacked(absl::string_view text, const std::string& name) {
  if (!IsArrayFile(text) && !IsPackedTable(text) && !IsParquet(text)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(name, ": only text can be read from packed files; unpack this one first"));
}

// Counts the rows of blanks and delimiters at the end, which spreadsheets leave there, and cuts
// them off.
int CutEmptyRows(absl::string_view& text, const std::string& name) {
  const char blanks[] = {DelimiterOf(text, name), ' ', '\t'};
  int rows = 0;
  while (true) {
    const size_t end = text.find_last_not_of("\r\n");
    if (end == text.npos) return rows;
    const size_t line_end = text.find_last_of("\r\n", end);
    const size_t begin = line_end == text.npos ? 0 : line_end + 1;
    const absl::string_view row = text.substr(begin, end + 1 - begin);
    const bool empty = row.find_first_not_of(absl::string_view(blanks, sizeof blanks)) == row.npos;
    if (!empty || !absl::StrContains(row, blanks[0])) return rows;
    text = text.substr(0, begin);
    ++rows;
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<TableText>> TableText::Of(absl::string_view bytes, std::string name,
                                                         const std::string& scratch,
                                                         uint64_t most) {
  std::unique_ptr<TableText> text(new TableText);
  text->csv_.name = std::move(name);
  text->csv_.bytes = bytes;
  if (IsPackedTable(bytes)) RETURN_IF_ERROR(text->Unpack(scratch, most));
  if (!MayBeText(text->csv_.bytes)) return text;
  RETURN_IF_ERROR(text->Decode(scratch));
  if (const int rows = CutEmptyRows(text->csv_.bytes, text->csv_.name); rows > 0) {
    text->csv_.warnings.push_back(absl::StrCat(text->csv_.name, ": ", rows,
                                               rows == 1 ? " row" : " rows",
                                               " without any value at the end left out"));
  }
  return text;
}

absl::Status TableText::Unpack(const std::string& scratch, uint64_t most) {
  ASSIGN_OR_RETURN(const auto packed, PackedTable::Open(csv_.bytes, /*whole=*/true, csv_.name));
  ASSIGN_OR_RETURN(unpacked_, ScratchFile::Create(scratch));
  std::string piece(kPiece, '\0');
  size_t read = piece.size();
  while (read == piece.size()) {
    ASSIGN_OR_RETURN(read, packed->Read(absl::MakeSpan(piece)));
    if (read > most - unpacked_->bytes()) {
      return absl::InvalidArgumentError(absl::StrCat(packed->name(),
                                                     ": the file unpacks to more than ", most >> 20,
                                                     " MiB; if that is right, unpack it first"));
    }
    RETURN_IF_ERROR(unpacked_->Append(absl::string_view(piece).substr(0, read)));
  }
  csv_.name = packed->name();
  ASSIGN_OR_RETURN(csv_.bytes, unpacked_->Map());
  return CheckUnpacked(csv_.bytes, csv_.name);
}

absl::Status TableText::Decode(const std::string& scratch) {
  const FoundEncoding found = FindEncoding(csv_.bytes);
  csv_.checked = found.encoding == TextEncoding::kUtf8;
  if (!NeedsDecoding(found.encoding)) return absl::OkStatus();
  csv_.warnings.push_back(absl::StrCat(csv_.name, ": ", EncodingWarning(csv_.bytes, found)));
  ASSIGN_OR_RETURN(decoded_, ScratchFile::Create(scratch));
  std::string piece;
  for (size_t at = found.mark; at < csv_.bytes.size();) {
    const absl::string_view part = csv_.bytes.substr(at, kPiece);
    piece.clear();
    at += DecodeText(part, found.encoding, at + part.size() == csv_.bytes.size(), piece);
    RETURN_IF_ERROR(decoded_->Append(piece));
  }
  ASSIGN_OR_RETURN(csv_.bytes, decoded_->Map());
  return absl::OkStatus();
}

absl::StatusOr<TableStart> StartOfTable(std::string part, bool whole, std::string name) {
  TableStart start;
  start.name = std::move(name);
  start.whole = whole;
  double packed_bytes = static_cast<double>(part.size());
  if (IsPackedTable(part)) {
    ASSIGN_OR_RETURN(const auto packed, PackedTable::Open(part, whole, start.name));
    start.name = packed->name();
    start.text.resize(kStartBytes);
    ASSIGN_OR_RETURN(const size_t read, packed->Read(absl::MakeSpan(start.text)));
    start.whole = whole && read < start.text.size();
    start.text.resize(read);
    packed_bytes = static_cast<double>(packed->taken());
    RETURN_IF_ERROR(CheckUnpacked(start.text, start.name));
  } else {
    start.text = std::move(part);
  }
  if (MayBeText(start.text)) {
    const absl::string_view bytes =
        start.whole ? absl::string_view(start.text) : WithoutCutCharacter(start.text);
    const FoundEncoding found = FindEncoding(bytes);
    if (NeedsDecoding(found.encoding)) {
      std::string decoded;
      DecodeText(bytes.substr(found.mark), found.encoding, start.whole, decoded);
      start.text = std::move(decoded);
    }
  }
  if (start.whole && MayBeText(start.text)) {
    absl::string_view text = start.text;
    CutEmptyRows(text, start.name);
    start.text.resize(text.size());
  }
  if (packed_bytes > 0) start.growth = static_cast<double>(start.text.size()) / packed_bytes;
  return start;
}

}  // namespace traind
