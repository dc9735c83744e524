// A layer below SQLite that keeps a checksum in each page of a database, because SQLite does not
// notice a bit that flips in a row.
#pragma once

#include <cstdint>

namespace traind::sqlite {

// A page of a database with checksums leaves so many bytes at its end to them.
inline constexpr int kChecksumBytes = 8;

// Returns the name under which SQLite opens files through this layer. In a database whose header
// reserves kChecksumBytes in each page, every page gets a checksum when it is written to the
// database file, and a page that does not match its checksum, or stands in another's place, cannot
// be read (SQLITE_IOERR_DATA). Other databases pass through unchanged. Pages in a write-ahead log
// have SQLite's own checksums.
// Threads: safe.
const char* ChecksumVfs();

// Puts its checksum at the end of a page, the number-th of its database from 0 on.
// Threads: safe.
void AddChecksum(char* page, int bytes, int64_t number);

}  // namespace traind::sqlite
