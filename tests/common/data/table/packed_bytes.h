// Packs bytes as gzip and ZIP do, for tests.
#pragma once

#include <zlib.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace traind::testing_table {

// window: MAX_WBITS + 16 for gzip, -MAX_WBITS for the bare data.
inline std::string Deflate(const std::string& bytes, int window) {
  z_stream stream = {};
  deflateInit2(&stream, Z_BEST_COMPRESSION, Z_DEFLATED, window, 8, Z_DEFAULT_STRATEGY);
  std::string packed(deflateBound(&stream, bytes.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  deflate(&stream, Z_FINISH);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

inline std::string Gzip(const std::string& bytes) { return Deflate(bytes, MAX_WBITS + 16); }

inline std::string LittleEndian(uint64_t value, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i, value >>= 8) text.push_back(static_cast<char>(value));
  return text;
}

// members: (name, bytes); they are deflated.
inline std::string Zip(const std::vector<std::pair<std::string, std::string>>& members) {
  std::string archive, directory;
  for (const auto& [name, bytes] : members) {
    const std::string packed = Deflate(bytes, -MAX_WBITS);
    const uLong crc =
        crc32(0, reinterpret_cast<const Bytef*>(bytes.data()), static_cast<uInt>(bytes.size()));
    const std::string common = LittleEndian(20, 2) + LittleEndian(0, 2) + LittleEndian(8, 2) +
                               LittleEndian(0, 4) + LittleEndian(crc, 4) +
                               LittleEndian(packed.size(), 4) + LittleEndian(bytes.size(), 4) +
                               LittleEndian(name.size(), 2) + LittleEndian(0, 2);
    directory += "PK\x01\x02" + LittleEndian(20, 2) + common + LittleEndian(0, 10) +
                 LittleEndian(archive.size(), 4) + name;
    archive += "PK\x03\x04" + common + name + packed;
  }
  return archive + directory + "PK\x05\x06" + LittleEndian(0, 4) + LittleEndian(members.size(), 2) +
         LittleEndian(members.size(), 2) + LittleEndian(directory.size(), 4) +
         LittleEndian(archive.size(), 4) + LittleEndian(0, 2);
}

}  // namespace traind::testing_table
