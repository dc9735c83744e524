// Reads any bytes as a table that may be packed and in any encoding, and packs them as one: pieces
// of any length, the beginning and the packed bytes tell what the whole file tells.
#include <absl/strings/match.h>

#include <algorithm>
#include <memory>
#include <string>

#include "common/base/utf8.h"
#include "common/data/table/array_file.h"
#include "common/data/table/other_formats.h"
#include "common/data/table/packed_table.h"
#include "common/data/table/table_text.h"
#include "tests/common/data/table/packed_bytes.h"
#include "tests/fuzz/check.h"
#include "tests/fuzz/scratch.h"

namespace traind {
namespace {

constexpr size_t kMost = kStartBytes - 1;  // unpacked; what is larger need not be read

void CheckError(const absl::Status& status) {
  Check(absl::IsInvalidArgument(status), "an error is of the input");
  Check(absl::StrContains(status.message(), "table"), "an error names the file");
}

// What comes out before the end, an error or kMost.
std::string Unpack(absl::string_view bytes, size_t piece, bool& damaged) {
  const auto packed = PackedTable::Open(bytes, /*whole=*/true, "table");
  damaged = !packed.ok();
  std::string text, part(piece, '\0');
  while (!damaged && text.size() <= kMost) {
    const auto read = (*packed)->Read(absl::MakeSpan(part));
    damaged = !read.ok();
    if (damaged) break;
    Check(*read <= piece && (*packed)->taken() <= bytes.size(), "no more is read than there is");
    text.append(part, 0, *read);
    if (*read < piece) break;
  }
  return text;
}

void CheckPieces(absl::string_view bytes) {
  bool damaged = false, damaged_in_pieces = false;
  const std::string text = Unpack(bytes, kMost + 1, damaged);
  const std::string in_pieces = Unpack(bytes, 61, damaged_in_pieces);
  if (damaged) {
    Check(damaged_in_pieces || in_pieces.size() > kMost, "damage is noticed in pieces, too");
  } else {
    Check(!damaged_in_pieces && in_pieces.substr(0, text.size()) == text,
          "pieces are those of the whole");
  }
}

absl::StatusOr<std::unique_ptr<TableText>> ReadWhole(absl::string_view bytes) {
  static const Scratch scratch;
  return TableText::Of(bytes, "table", scratch.path(), kMost);
}

// Returns the text of the file; null: it is refused.
std::unique_ptr<TableText> CheckWhole(absl::string_view bytes) {
  auto text = ReadWhole(bytes);
  const auto start = StartOfTable(std::string(bytes), /*whole=*/true, "table");
  if (!text.ok()) {
    CheckError(text.status());
    Check(!start.ok() || !start->whole, "what is refused later is refused at once");
    if (!start.ok()) CheckError(start.status());
    return nullptr;
  }
  Check(start.ok() && start->whole, "what is read later is not refused at first");
  const CsvFile& csv = (*text)->csv();
  Check(start->name == csv.name && start->text == csv.bytes, "the beginning is the whole file");
  Check(!csv.checked || FirstNotUtf8(csv.bytes) == csv.bytes.npos, "what is checked is UTF-8");
  return *std::move(text);
}

// Archives are left out: their directory lies at their end, and may contradict their beginning.
void CheckBeginning(absl::string_view bytes, bool sound) {
  const auto start = StartOfTable(std::string(bytes.substr(0, bytes.size() / 2)), false, "table");
  if (start.ok()) {
    Check(start->text.size() <= 3 * kStartBytes && start->growth >= 0, "a beginning is small");
  } else {
    CheckError(start.status());
    Check(!sound || absl::StartsWith(bytes, "PK"), "a sound file has a sound beginning");
  }
}

// Packs the bytes, which must give the same text as they do unpacked.
void CheckPacked(const std::string& packed, const TableText* plain, bool may_be_packed) {
  const auto text = ReadWhole(packed);
  if (!text.ok()) {
    CheckError(text.status());
    Check(plain == nullptr || !may_be_packed, "a packed table is read as it is unpacked");
    return;
  }
  Check(plain != nullptr && may_be_packed, "a table that is refused is not read when it is packed");
  Check((*text)->csv().bytes == plain->csv().bytes, "a packed table is the same table");
}

}  // namespace
}  // namespace traind

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace traind;
  const absl::string_view bytes = Bytes(data, size);
  const bool packed = IsPackedTable(bytes);
  if (packed) CheckPieces(bytes);
  const std::unique_ptr<TableText> text = CheckWhole(bytes);
  CheckBeginning(bytes, text != nullptr);
  const bool may_be_packed = !IsArrayFile(bytes) && !packed && !IsParquet(bytes);
  CheckPacked(testing_table::Gzip(std::string(bytes)), text.get(), may_be_packed);
  CheckPacked(testing_table::Zip({{"table.csv", std::string(bytes)}}), text.get(), may_be_packed);
  return 0;
}
