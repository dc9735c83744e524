#include "common/data/table/packed_table.h"

#include <absl/strings/ascii.h>
#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "common/base/status_macros.h"
#include "common/data/table/zip.h"

namespace traind {
namespace {

constexpr absl::string_view kGzip = "\x1f\x8b", kZip = "PK\x03\x04";
constexpr size_t kMostAtOnce = 1 << 30;  // zlib counts in 32 bits

absl::Status Wrong(absl::string_view name, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(name, ": ", what));
}

// Folders, and files that macOS adds.
bool IsNoTable(absl::string_view member) {
  return absl::EndsWith(member, "/") || absl::StartsWith(member, "__MACOSX/") ||
         absl::EndsWith(member, ".DS_Store");
}

constexpr uint16_t kDeflate = 8;  // ZIP's number of it

// Goes to the first member that may be a table, and returns its header; one without a name: there
// is none in these bytes.
LocalZipHeader SkipToTable(absl::string_view& bytes) {
  LocalZipHeader header = ReadLocalZipHeader(bytes);
  while (IsNoTable(header.name)) {
    bytes.remove_prefix(std::min<uint64_t>(bytes.size(), header.begin + header.packed));
    header = ReadLocalZipHeader(bytes);
  }
  return header;
}

enum class Form { kGzip, kDeflated, kStored };

// Unpacks gzip streams that follow each other, or a member of a ZIP archive.
class Unpacker final : public PackedTable {
 public:
  struct Source {
    absl::string_view packed;
    bool whole = true;
    Form form = Form::kGzip;
    std::string name;
    // Of a member, if its directory is known.
    bool sized = false;
    uint64_t size = 0;
    uint32_t crc = 0;
  };

  static absl::StatusOr<std::unique_ptr<PackedTable>> Make(Source source) {
    std::unique_ptr<Unpacker> unpacker(new Unpacker(std::move(source)));
    constexpr int kGzipHeader = 16;
    const int window = unpacker->source_.form == Form::kGzip ? MAX_WBITS + kGzipHeader : -MAX_WBITS;
    if (inflateInit2(&unpacker->stream_, window) != Z_OK) {
      return absl::ResourceExhaustedError("no memory to unpack");
    }
    return std::unique_ptr<PackedTable>(std::move(unpacker));
  }
  ~Unpacker() override { inflateEnd(&stream_); }

  absl::StatusOr<size_t> Read(absl::Span<char> out) override {
    size_t done = 0;
    while (done < out.size() && !ended_) {
      const auto part = out.subspan(done, kMostAtOnce);
      ASSIGN_OR_RETURN(const size_t some,
                       source_.form == Form::kStored ? Copy(part) : Inflate(part));
      done += some;
    }
    RETURN_IF_ERROR(CheckMember(out.first(done)));
    return done;
  }
  size_t taken() const override { return taken_; }
  const std::string& name() const override { return source_.name; }

 private:
  explicit Unpacker(Source source) : source_(std::move(source)) {}

  absl::StatusOr<size_t> Copy(absl::Span<char> out) {
    const size_t some = std::min(out.size(), source_.packed.size() - taken_);
    std::memcpy(out.data(), source_.packed.data() + taken_, some);
    taken_ += some;
    ended_ = taken_ == source_.packed.size();
    return some;
  }

  absl::StatusOr<size_t> Inflate(absl::Span<char> out) {
    const absl::string_view left = source_.packed.substr(taken_, kMostAtOnce);
    stream_.next_in =
        reinterpret_cast<Bytef*>(const_cast<char*>(left.data()));  // zlib does not write to it
    stream_.avail_in = static_cast<uInt>(left.size());
    stream_.next_out = reinterpret_cast<Bytef*>(out.data());
    stream_.avail_out = static_cast<uInt>(out.size());
    const int result = inflate(&stream_, Z_NO_FLUSH);
    taken_ += left.size() - stream_.avail_in;
    const size_t some = out.size() - stream_.avail_out;
    if (result == Z_STREAM_END) {
      // What follows the last stream of a gzip file is padding.
      ended_ =
          source_.form != Form::kGzip || !absl::StartsWith(source_.packed.substr(taken_), kGzip);
      if (!ended_) inflateReset(&stream_);
      return some;
    }
    if (result == Z_OK && (some > 0 || taken_ < source_.packed.size())) return some;
    if (result == Z_OK || result == Z_BUF_ERROR) {
      if (source_.whole) return Wrong(source_.name, "the file is cut: its packed data do not end");
      ended_ = true;
      return some;
    }
    return Wrong(source_.name,
                 absl::StrCat("the packed data are damaged",
                              stream_.msg == nullptr ? "" : absl::StrCat(": ", stream_.msg)));
  }

  // Holds a member of an archive to the size and the checksum of its directory.
  absl::Status CheckMember(absl::Span<const char> read) {
    if (!source_.sized) return absl::OkStatus();
    size_ += read.size();
    for (size_t at = 0; at < read.size(); at += kMostAtOnce) {
      const auto part = read.subspan(at, kMostAtOnce);
      crc_ =
          crc32(crc_, reinterpret_cast<const Bytef*>(part.data()), static_cast<uInt>(part.size()));
    }
    if (size_ > source_.size || (ended_ && (size_ != source_.size || crc_ != source_.crc))) {
      return Wrong(source_.name, "the archive is damaged: it does not unpack to what it states");
    }
    return absl::OkStatus();
  }

  const Source source_;
  z_stream stream_ = {};
  size_t taken_ = 0;
  bool ended_ = false;
  uint64_t size_ = 0;
  uLong crc_ = crc32(0, nullptr, 0);
};

// The one file of a whole archive.
absl::StatusOr<Unpacker::Source> MemberOf(absl::string_view bytes, const std::string& name) {
  ASSIGN_OR_RETURN(std::vector<ZipMember> members, ReadZip(bytes, name));
  members.erase(std::remove_if(members.begin(), members.end(),
                               [](const ZipMember& member) { return IsNoTable(member.name); }),
                members.end());
  if (members.size() != 1) {
    const std::string which = members.empty() ? ""
                                              : absl::StrCat(", such as '", members[0].name,
                                                             "' and '", members[1].name, "'");
    return Wrong(name, absl::StrCat("the archive holds ", members.size(), " files", which,
                                    "; a table is packed as the only file of an archive"));
  }
  const ZipMember& member = members[0];
  Unpacker::Source source;
  source.packed = member.stored;
  source.form = member.deflated ? Form::kDeflated : Form::kStored;
  source.name = absl::StrCat(name, "/", member.name);
  source.sized = true;
  source.size = member.size;
  source.crc = member.crc32;
  return source;
}

// The first file of the beginning of an archive.
absl::StatusOr<Unpacker::Source> FirstMemberOf(absl::string_view bytes, const std::string& name) {
  Unpacker::Source source;
  source.whole = false;
  source.form = Form::kStored;
  source.name = name;
  const LocalZipHeader header = SkipToTable(bytes);
  if (header.encrypted || (header.method != 0 && header.method != kDeflate)) {
    return Wrong(name, absl::StrCat("'", header.name, "' is encrypted, or packed by another ",
                                    "method than deflate"));
  }
  source.form = header.method == kDeflate ? Form::kDeflated : Form::kStored;
  source.packed = bytes.substr(header.begin);
  if (source.form == Form::kStored) source.packed = source.packed.substr(0, header.packed);
  source.name = absl::StrCat(name, "/", header.name);
  return source;
}

}  // namespace

bool IsPackedTable(absl::string_view bytes) {
  if (absl::StartsWith(bytes, kGzip)) return true;
  if (!absl::StartsWith(bytes, kZip)) return false;
  const std::string name = absl::AsciiStrToLower(SkipToTable(bytes).name);
  for (const char* end : {".csv", ".tsv", ".tab", ".txt"}) {
    if (absl::EndsWith(name, end)) return true;
  }
  return false;
}

absl::StatusOr<std::unique_ptr<PackedTable>> PackedTable::Open(absl::string_view bytes, bool whole,
                                                               const std::string& name) {
  Unpacker::Source source;
  if (absl::StartsWith(bytes, kGzip)) {
    source.packed = bytes;
    source.whole = whole;
    source.name = name;
  } else if (whole) {
    ASSIGN_OR_RETURN(source, MemberOf(bytes, name));
  } else {
    ASSIGN_OR_RETURN(source, FirstMemberOf(bytes, name));
  }
  return Unpacker::Make(std::move(source));
}

}  // namespace traind
