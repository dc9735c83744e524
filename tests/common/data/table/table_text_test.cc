// Tables that are packed, or not in UTF-8.
#include "common/data/table/table_text.h"

#include <absl/strings/str_cat.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "common/data/table/csv.h"
#include "common/data/table/packed_table.h"
#include "common/data/table/text_encoding.h"
#include "tests/common/data/table/packed_bytes.h"

namespace traind {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing_table::Gzip;
using testing_table::Zip;

std::string Decoded(absl::string_view bytes) {
  const FoundEncoding found = FindEncoding(bytes);
  std::string out;
  DecodeText(bytes.substr(found.mark), found.encoding, /*last=*/true, out);
  return out;
}

// UTF-16 with a byte order mark. REQUIRES: `text` is ASCII.
std::string Utf16(const std::string& text, bool big) {
  std::string bytes = big ? "\xfe\xff" : "\xff\xfe";
  for (const char c : text) {
    if (big) bytes.push_back('\0');
    bytes.push_back(c);
    if (!big) bytes.push_back('\0');
  }
  return bytes;
}

TEST(TextEncodingTest, BytesThatAreNotUtf8AreWindows1252) {
  // "Zürich, 5 €, “a”" as a German Excel writes it.
  const std::string bytes =
      "Z\xfcrich, 5 \x80, \x93"
      "a\x94";
  EXPECT_EQ(FindEncoding(bytes).encoding, TextEncoding::kWindows1252);
  EXPECT_EQ(FindEncoding(bytes).first, 1);
  EXPECT_EQ(Decoded(bytes), "Zürich, 5 €, “a”");
  // Bytes that would be UTF-8 by chance are not taken for it: »SPAß» and others.
  EXPECT_EQ(Decoded("\xbbSPA\xdf\xbb \xfc \xf6"), "»SPAß» ü ö");
  EXPECT_EQ(FindEncoding("Zürich 東京 😀").encoding, TextEncoding::kUtf8);
}

TEST(TextEncodingTest, AFewOtherBytesAmongUtf8AreDecodedAlone) {
  const std::string bytes = "Zürich,Genève,K\xf6ln";
  EXPECT_EQ(FindEncoding(bytes).encoding, TextEncoding::kDamagedUtf8);
  EXPECT_EQ(Decoded(bytes), "Zürich,Genève,Köln");
  // A byte order mark says that the rest is UTF-8.
  EXPECT_EQ(FindEncoding("\xef\xbb\xbfK\xf6ln, M\xfcnchen").encoding, TextEncoding::kDamagedUtf8);
}

TEST(TextEncodingTest, BytesOfNoKnownEncodingAreLeftAlone) {
  EXPECT_EQ(FindEncoding("\x81\xfc").encoding, TextEncoding::kUnknown);
  EXPECT_EQ(FindEncoding(std::string("a\xfc\0b", 4)).encoding, TextEncoding::kUnknown);
  EXPECT_EQ(FindEncoding(std::string("a\0b", 3)).encoding, TextEncoding::kUnknown);
}

TEST(TextEncodingTest, Utf16IsReadInBothOrders) {
  EXPECT_EQ(Decoded(Utf16("a,b\n", false)), "a,b\n");
  EXPECT_EQ(Decoded(Utf16("a,b\n", true)), "a,b\n");
  EXPECT_EQ(Decoded(std::string("\xfe\xff\x20\xac\xd8\x3d\xde\x00", 8)), "€😀");
  EXPECT_EQ(Decoded(std::string("\xff\xfe\xac\x20\x3d\xd8\x00\xde", 8)), "€😀");
  // Halves of pairs, and half a unit.
  EXPECT_EQ(Decoded("\xfe\xff\xd8\x3d\x20\xac\xde\x3d\x20"), "\ufffd€\ufffd\ufffd");
}

TEST(TextEncodingTest, PiecesGiveTheSameTextAsTheWhole) {
  const std::string utf16("\xff\xfe\xac\x20\x3d\xd8\x00\xde\x41\x00", 10);
  const std::string damaged = "Zürich 😀 東京,K\xf6ln";
  for (const std::string& bytes : {utf16, damaged}) {
    const FoundEncoding found = FindEncoding(bytes);
    for (size_t size = 4; size < bytes.size(); ++size) {
      std::string out;
      for (size_t at = found.mark; at < bytes.size();) {
        const absl::string_view part = absl::string_view(bytes).substr(at, size);
        at += DecodeText(part, found.encoding, at + part.size() == bytes.size(), out);
      }
      EXPECT_EQ(out, Decoded(bytes)) << size;
    }
  }
}

TEST(TextEncodingTest, ACutCharacterIsTakenOff) {
  EXPECT_EQ(WithoutCutCharacter("a\xe2\x82"), "a");
  EXPECT_EQ(WithoutCutCharacter("a\xe2\x82\xac"), "a\xe2\x82\xac");
  EXPECT_EQ(WithoutCutCharacter("a\xc3"), "a");
  EXPECT_EQ(WithoutCutCharacter("\xf0\x9f\x98"), "");
  EXPECT_EQ(WithoutCutCharacter("ab"), "ab");
  EXPECT_EQ(WithoutCutCharacter(""), "");
}

class TableTextTest : public ::testing::Test {
 protected:
  TableTextTest() {
    std::string pattern = ::testing::TempDir() + "/scratch.XXXXXX";
    dir_ = mkdtemp(pattern.data());
  }
  ~TableTextTest() override {
    // Scratch files have no name.
    EXPECT_TRUE(std::filesystem::is_empty(dir_));
    std::filesystem::remove_all(dir_);
  }
  absl::StatusOr<std::unique_ptr<TableText>> Of(absl::string_view bytes,
                                                uint64_t most = kMostUnpackedBytes) const {
    return TableText::Of(bytes, "t.csv", dir_, most);
  }
  std::string TextOf(const std::string& bytes) const {
    const auto text = Of(bytes);
    EXPECT_TRUE(text.ok()) << text.status();
    return text.ok() ? std::string((*text)->csv().bytes) : "";
  }
  std::string Refusal(const std::string& bytes, uint64_t most = kMostUnpackedBytes) const {
    const auto text = Of(bytes, most);
    EXPECT_EQ(text.status().code(), absl::StatusCode::kInvalidArgument) << text.status();
    return std::string(text.status().message());
  }

  std::string dir_;
};

TEST_F(TableTextTest, TextInUtf8IsNotCopied) {
  const std::string bytes = "stadt,y\nZürich,1\n";
  const auto text = Of(bytes);
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_EQ((*text)->csv().bytes.data(), bytes.data());
  EXPECT_TRUE((*text)->csv().checked);
  EXPECT_THAT((*text)->csv().warnings, IsEmpty());
}

TEST_F(TableTextTest, AWarningNamesTheEncodingAndAnExample) {
  const auto text = Of("stadt,y\nBern,1\nZ\xfcrich,1\n");
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_EQ((*text)->csv().bytes, "stadt,y\nBern,1\nZürich,1\n");
  EXPECT_THAT((*text)->csv().warnings,
              ElementsAre("t.csv: the file is not UTF-8; it is read as Windows-1252, such as "
                          "'Zürich' (line 3)"));
  const auto damaged = Of("a\nZürich\nGenève\nK\xf6ln\n");
  ASSERT_TRUE(damaged.ok()) << damaged.status();
  EXPECT_THAT((*damaged)->csv().warnings,
              ElementsAre("t.csv: 1 byte is not UTF-8 and read as Windows-1252, such as 'Köln' "
                          "(line 4)"));
  const auto utf16 = Of(Utf16("a\tb\n", false));
  ASSERT_TRUE(utf16.ok()) << utf16.status();
  EXPECT_EQ((*utf16)->csv().bytes, "a\tb\n");
  EXPECT_THAT((*utf16)->csv().warnings, ElementsAre("t.csv: the file is read as UTF-16"));
}

TEST_F(TableTextTest, TextInNoKnownEncodingIsLeftForTheReaderToRefuse) {
  const std::string bytes = "a\n\x81\n";
  const auto text = Of(bytes);
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_EQ((*text)->csv().bytes, bytes);
  EXPECT_FALSE((*text)->csv().checked);
}

// Larger than the pieces in which tables are unpacked and decoded.
std::string LargeTable() {
  std::string table = "ort,y\n";
  for (int i = 0; i < 60000; ++i) absl::StrAppend(&table, "K\xf6ln ", i * 7919 % 10007, ",1\n");
  return table;
}

TEST_F(TableTextTest, GzipIsUnpackedThenDecoded) {
  const std::string table = LargeTable();
  EXPECT_EQ(TextOf(Gzip(table)), Decoded(table));
  // Streams may follow each other, and padding may follow them.
  EXPECT_EQ(TextOf(Gzip("a,b\n") + Gzip("1,2\n") + std::string(5, '\0')), "a,b\n1,2\n");
}

TEST_F(TableTextTest, AZipArchiveOfOneFileIsThatFile) {
  const std::string table = LargeTable();
  const std::string bytes =
      Zip({{"data/", ""}, {"data/x.tsv", table}, {"__MACOSX/data/._x.tsv", "?"}});
  const auto text = Of(bytes);
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_EQ((*text)->csv().bytes, Decoded(table));
  EXPECT_EQ((*text)->csv().name, "t.csv/data/x.tsv");
  EXPECT_EQ(Refusal(Zip({{"train.csv", "a\n1\n"}, {"test.csv", "a\n1\n"}})),
            "t.csv: the archive holds 2 files, such as 'train.csv' and 'test.csv'; a table is "
            "packed as the only file of an archive");
}

TEST_F(TableTextTest, EmptyRowsAtTheEndAreCutOff) {
  const std::string table = "a,b,y\n1,2,3\n,,\n4,5,6\r\n";
  const std::string bytes = table + ",,\r\n , ,\n\n,,,,\n";
  const auto text = Of(bytes);
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_EQ((*text)->csv().bytes, table);
  EXPECT_THAT((*text)->csv().warnings,
              ElementsAre("t.csv: 3 rows without any value at the end left out"));
  EXPECT_EQ(StartOfTable(bytes, /*whole=*/true, "t")->text, table);
  EXPECT_EQ(StartOfTable(bytes, /*whole=*/false, "t")->text, bytes);
  // Quotes hold a value, and so does a row of one column.
  for (const std::string whole : {"a,b\n1,\"2\n,\"\n", "a\n1\n-\n", "a\n1\n\n", ""}) {
    EXPECT_EQ(TextOf(whole), whole);
  }
  EXPECT_EQ(TextOf("a;b\n1;2\n;\n"), "a;b\n1;2\n");
}

TEST_F(TableTextTest, ArraysAndSpreadsheetsAreNoPackedTables) {
  EXPECT_FALSE(IsPackedTable(Zip({{"x.npy", "?"}})));
  EXPECT_FALSE(IsPackedTable(Zip({{"xl/workbook.xml", "?"}})));
  EXPECT_FALSE(IsPackedTable(Zip({{"net/data.pkl", "?"}, {"x.csv", "?"}})));
  EXPECT_FALSE(IsPackedTable(Zip({{"data/", ""}})));
  EXPECT_TRUE(IsPackedTable(Zip({{"x.CSV", "?"}})));
  EXPECT_EQ(TextOf("\xd0\xcf\x11\xe0"), "\xd0\xcf\x11\xe0");
  EXPECT_THAT(Refusal(Gzip("\x93NUMPY")), HasSubstr("t.csv: only text can be read from packed"));
  EXPECT_THAT(Refusal(Gzip(Gzip("a\n1\n"))), HasSubstr("only text"));
}

TEST_F(TableTextTest, DamagedArchivesNameTheFile) {
  const std::string gzip = Gzip(LargeTable());
  EXPECT_EQ(Refusal(gzip.substr(0, gzip.size() / 2)),
            "t.csv: the file is cut: its packed data do not end");
  EXPECT_EQ(Refusal(gzip.substr(0, gzip.size() - 1)),
            "t.csv: the file is cut: its packed data do not end");
  std::string changed = gzip;
  changed[changed.size() - 6] = static_cast<char>(changed[changed.size() - 6] ^ 1);
  EXPECT_THAT(Refusal(changed), HasSubstr("t.csv: the packed data are damaged"));
  const std::string zip = Zip({{"x.csv", LargeTable()}});
  EXPECT_THAT(Refusal(zip.substr(0, zip.size() / 2)), HasSubstr("t.csv"));
  std::string other = zip;
  other[14] ^= 1;                              // the checksum before the member
  other[other.rfind("PK\x01\x02") + 16] ^= 1;  // and in the directory
  EXPECT_EQ(Refusal(other),
            "t.csv/x.csv: the archive is damaged: it does not unpack to what it states");
}

TEST_F(TableTextTest, ABombIsNotUnpackedToItsEnd) {
  const std::string bomb = Gzip(std::string(3 << 20, 'a'));
  EXPECT_LT(bomb.size(), 5000);
  EXPECT_EQ(Refusal(bomb, 2 << 20),
            "t.csv: the file unpacks to more than 2 MiB; if that is right, unpack it first");
  EXPECT_EQ(TextOf(bomb).size(), 3 << 20);
}

TEST(StartOfTableTest, TheBeginningOfAPackedTableIsEnough) {
  std::string table = "ort,y\n";
  for (int64_t i = 0; i < 400000; ++i)
    absl::StrAppend(&table, "K\xf6ln ", i * 7919 % 100003, ",1\n");
  const std::string gzip = Gzip(table), zip = Zip({{"data/", ""}, {"data/x.csv", table}});
  for (const std::string& bytes : {gzip, zip}) {
    ASSERT_GT(bytes.size(), 600000);
    const auto start = StartOfTable(bytes.substr(0, 600000), /*whole=*/false, "t");
    ASSERT_TRUE(start.ok()) << start.status();
    EXPECT_FALSE(start->whole);
    EXPECT_EQ(start->text.substr(0, 20), "ort,y\nKöln 0,1\nKöl");
    EXPECT_GE(start->text.size(), kStartBytes);
    // The size of all of it is estimated by that of the beginning.
    const double size = static_cast<double>(bytes.size()) * start->growth;
    EXPECT_NEAR(size / static_cast<double>(Decoded(table).size()), 1, 0.2);
  }
  const auto all = StartOfTable(Gzip("a,b\n1,2\n"), /*whole=*/true, "t");
  ASSERT_TRUE(all.ok()) << all.status();
  EXPECT_TRUE(all->whole);
  EXPECT_EQ(all->text, "a,b\n1,2\n");
}

TEST(StartOfTableTest, AFileThatIsCutIsRefusedIfAllOfItIsThere) {
  std::string gzip = Gzip("a,b\n1,2\n");
  gzip.resize(gzip.size() - 3);
  EXPECT_EQ(StartOfTable(gzip, /*whole=*/true, "t").status().message(),
            "t: the file is cut: its packed data do not end");
  const auto part = StartOfTable(gzip, /*whole=*/false, "t");
  ASSERT_TRUE(part.ok()) << part.status();
  EXPECT_EQ(part->text, "a,b\n1,2\n");
}

TEST(StartOfTableTest, AnOrdinaryTableIsAsItIs) {
  const auto start = StartOfTable("a,b\n1,2\n", /*whole=*/true, "t");
  ASSERT_TRUE(start.ok()) << start.status();
  EXPECT_EQ(start->text, "a,b\n1,2\n");
  EXPECT_EQ(start->growth, 1);
  // A character that the end of the part cuts does not make it Windows-1252.
  const auto cut = StartOfTable("a\nZ\xc3", /*whole=*/false, "t");
  ASSERT_TRUE(cut.ok()) << cut.status();
  EXPECT_EQ(cut->text, "a\nZ\xc3");
}

TEST(DelimiterTest, ThatOfAPackedFileIsToldByTheNameBeforeGz) {
  EXPECT_EQ(DelimiterOf("a,b\tc\n", "t.TSV.gz"), '\t');
  EXPECT_EQ(DelimiterOf("a,b\tc\n", "t.zip/x.tsv"), '\t');
}

}  // namespace
}  // namespace traind
