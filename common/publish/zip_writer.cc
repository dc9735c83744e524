#include "common/publish/zip_writer.h"

#include <absl/cleanup/cleanup.h>
#include <absl/strings/str_cat.h>
#include <fcntl.h>
#include <unistd.h>
#include <zlib.h>

#include <cerrno>
#include <cstdint>
#include <memory>

#include "common/base/status_macros.h"

namespace traind {
namespace {

constexpr size_t kBlock = 1 << 18;
constexpr int64_t kMostBytes = (int64_t{1} << 32) - 2;
constexpr uint16_t kVersion = 20;     // of the format: deflate
constexpr uint16_t kSizesFollow = 8;  // flag: sizes follow the data
constexpr uint16_t kDeflate = 8;
constexpr uint16_t kDate = (1 << 5) | 1;  // 1 January 1980, so that equal content gives equal bytes

struct Entry {
  std::string name;
  uint32_t crc = 0;
  int64_t packed = 0, size = 0, offset = 0;
};

template <class T>
void Put(T value, std::string& out) {
  for (size_t i = 0; i < sizeof value; ++i) {
    out.push_back(static_cast<char>(static_cast<uint64_t>(value) >> (8 * i)));
  }
}

// Appends the fields that a local header and the directory share, from "version needed" to the
// sizes.
void PutCommon(const Entry& entry, bool sizes, std::string& out) {
  Put<uint16_t>(kVersion, out);
  Put<uint16_t>(kSizesFollow, out);
  Put<uint16_t>(kDeflate, out);
  Put<uint16_t>(0, out);
  Put<uint16_t>(kDate, out);
  Put<uint32_t>(sizes ? entry.crc : 0, out);
  Put<uint32_t>(sizes ? static_cast<uint32_t>(entry.packed) : 0, out);
  Put<uint32_t>(sizes ? static_cast<uint32_t>(entry.size) : 0, out);
  Put<uint16_t>(static_cast<uint16_t>(entry.name.size()), out);
  Put<uint16_t>(0, out);
}

absl::Status TooLarge() {
  return absl::ResourceExhaustedError("predictions.zip would pass 4 GiB; ask for npy or csv");
}

absl::Status Deflate(const std::string& path, Entry& entry, DurableWriter& out) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return ErrnoStatus(errno, absl::StrCat("cannot open ", path));
  const absl::Cleanup closer = [fd] { close(fd); };
  z_stream stream = {};
  if (deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY) !=
      Z_OK) {
    return absl::ResourceExhaustedError("no memory to pack");
  }
  const absl::Cleanup ender = [&stream] { deflateEnd(&stream); };
  std::string in(kBlock, '\0'), packed(kBlock, '\0');
  uLong crc = crc32(0, nullptr, 0);
  const int64_t begin = out.bytes();
  for (bool last = false; !last;) {
    const ssize_t n = read(fd, in.data(), in.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return ErrnoStatus(errno, absl::StrCat("cannot read ", path));
    last = n == 0;
    entry.size += n;
    crc = crc32(crc, reinterpret_cast<const Bytef*>(in.data()), static_cast<uInt>(n));
    stream.next_in = reinterpret_cast<Bytef*>(in.data());
    stream.avail_in = static_cast<uInt>(n);
    do {
      stream.next_out = reinterpret_cast<Bytef*>(packed.data());
      stream.avail_out = static_cast<uInt>(packed.size());
      deflate(&stream, last ? Z_FINISH : Z_NO_FLUSH);
      RETURN_IF_ERROR(
          out.Append(absl::string_view(packed).substr(0, packed.size() - stream.avail_out)));
    } while (stream.avail_out == 0);
    if (entry.size > kMostBytes || out.bytes() > kMostBytes) return TooLarge();
  }
  entry.crc = static_cast<uint32_t>(crc);
  entry.packed = out.bytes() - begin;
  return absl::OkStatus();
}

absl::Status AddFile(const std::string& path, Entry& entry, DurableWriter& out) {
  entry.offset = out.bytes();
  std::string head;
  Put<uint32_t>(0x04034b50, head);
  PutCommon(entry, /*sizes=*/false, head);
  RETURN_IF_ERROR(out.Append(head + entry.name));
  RETURN_IF_ERROR(Deflate(path, entry, out));
  std::string sizes;
  Put<uint32_t>(0x08074b50, sizes);
  Put<uint32_t>(entry.crc, sizes);
  Put<uint32_t>(static_cast<uint32_t>(entry.packed), sizes);
  Put<uint32_t>(static_cast<uint32_t>(entry.size), sizes);
  return out.Append(sizes);
}

std::string Directory(const std::vector<Entry>& entries, int64_t offset) {
  std::string out;
  for (const Entry& entry : entries) {
    Put<uint32_t>(0x02014b50, out);
    Put<uint16_t>(kVersion, out);
    PutCommon(entry, /*sizes=*/true, out);
    Put<uint16_t>(0, out);  // comment
    Put<uint16_t>(0, out);  // volume
    Put<uint16_t>(0, out);  // internal attributes
    Put<uint32_t>(0, out);  // external attributes
    Put<uint32_t>(static_cast<uint32_t>(entry.offset), out);
    out += entry.name;
  }
  const auto bytes = static_cast<uint32_t>(out.size());
  Put<uint32_t>(0x06054b50, out);
  Put<uint32_t>(0, out);  // volumes
  Put<uint16_t>(static_cast<uint16_t>(entries.size()), out);
  Put<uint16_t>(static_cast<uint16_t>(entries.size()), out);
  Put<uint32_t>(bytes, out);
  Put<uint32_t>(static_cast<uint32_t>(offset), out);
  Put<uint16_t>(0, out);  // comment
  return out;
}

}  // namespace

absl::StatusOr<FileDigest> WriteZip(const std::string& path,
                                    const std::vector<std::pair<std::string, std::string>>& files) {
  ASSIGN_OR_RETURN(const std::unique_ptr<DurableWriter> out, DurableWriter::Create(path));
  std::vector<Entry> entries;
  for (const auto& [name, source] : files) {
    Entry& entry = entries.emplace_back();
    entry.name = name;
    RETURN_IF_ERROR(AddFile(source, entry, *out));
  }
  if (out->bytes() > kMostBytes) return TooLarge();
  RETURN_IF_ERROR(out->Append(Directory(entries, out->bytes())));
  return out->Commit();
}

}  // namespace traind
