#include "server/store/checksum_vfs.h"

#include <sqlite3.h>

#include <cstdint>
#include <cstring>
#include <vector>

namespace traind::sqlite {
namespace {

constexpr char kName[] = "traind-checksums";
constexpr char kHeader[] = "SQLite format 3";  // with its final 0
constexpr int kHeaderBytes = 100;
constexpr int kReservedAt = 20;  // in the header

// The file as SQLite sees it; the real one follows in memory.
struct File {
  sqlite3_file base;
  bool has_checksums;
};

File* Self(sqlite3_file* file) { return reinterpret_cast<File*>(file); }
sqlite3_file* Real(sqlite3_file* file) { return reinterpret_cast<sqlite3_file*>(Self(file) + 1); }
sqlite3_vfs* RealVfs() {
  static sqlite3_vfs* const vfs = sqlite3_vfs_find(nullptr);
  return vfs;
}

// Each step maps different words to different sums and different sums to different sums, so that
// any change within one word changes the result.
uint64_t Sum(const char* page, int bytes, int64_t number) {
  uint64_t sum = static_cast<uint64_t>(number) * 0x9E3779B97F4A7C15u;
  for (int i = 0; i < bytes; i += 8) {
    uint64_t word = 0;
    std::memcpy(&word, page + i, sizeof(word));
    sum = (sum ^ word) * 0xD6E8FEB86659FD93u;
    sum ^= sum >> 32;
  }
  return sum;
}

void NoteHeader(File* file, const void* bytes, int count, sqlite3_int64 offset) {
  if (offset != 0 || count < kHeaderBytes) return;
  const auto* const header = static_cast<const char*>(bytes);
  if (std::memcmp(header, kHeader, sizeof(kHeader)) != 0) return;
  file->has_checksums = header[kReservedAt] == kChecksumBytes;
}

bool IsPage(int count, sqlite3_int64 offset) {
  return count >= 512 && (count & (count - 1)) == 0 && offset % count == 0;
}

int Read(sqlite3_file* file, void* bytes, int count, sqlite3_int64 offset) {
  const int code = Real(file)->pMethods->xRead(Real(file), bytes, count, offset);
  if (code != SQLITE_OK) return code;
  NoteHeader(Self(file), bytes, count, offset);
  if (!Self(file)->has_checksums || !IsPage(count, offset)) return SQLITE_OK;
  const auto* const page = static_cast<const char*>(bytes);
  const int rest = count - kChecksumBytes;
  const uint64_t sum = Sum(page, rest, offset / count);
  return std::memcmp(page + rest, &sum, sizeof(sum)) == 0 ? SQLITE_OK : SQLITE_IOERR_DATA;
}

int Write(sqlite3_file* file, const void* bytes, int count, sqlite3_int64 offset) {
  NoteHeader(Self(file), bytes, count, offset);
  if (!Self(file)->has_checksums || !IsPage(count, offset)) {
    return Real(file)->pMethods->xWrite(Real(file), bytes, count, offset);
  }
  const auto* const begin = static_cast<const char*>(bytes);
  std::vector<char> page(begin, begin + count);
  AddChecksum(page.data(), count, offset / count);
  return Real(file)->pMethods->xWrite(Real(file), page.data(), count, offset);
}

int Close(sqlite3_file* file) { return Real(file)->pMethods->xClose(Real(file)); }

int Fetch(sqlite3_file*, sqlite3_int64, int, void** bytes) {
  *bytes = nullptr;  // a mapped page would not pass through Read
  return SQLITE_OK;
}

int Unfetch(sqlite3_file*, sqlite3_int64, void*) { return SQLITE_OK; }

// Passes a call on to the real file.
template <auto kMethod, typename Result, typename... Arguments>
Result Pass(sqlite3_file* file, Arguments... arguments) {
  return (Real(file)->pMethods->*kMethod)(Real(file), arguments...);
}

constexpr sqlite3_io_methods kMethods = {
    3,
    Close,
    Read,
    Write,
    Pass<&sqlite3_io_methods::xTruncate, int, sqlite3_int64>,
    Pass<&sqlite3_io_methods::xSync, int, int>,
    Pass<&sqlite3_io_methods::xFileSize, int, sqlite3_int64*>,
    Pass<&sqlite3_io_methods::xLock, int, int>,
    Pass<&sqlite3_io_methods::xUnlock, int, int>,
    Pass<&sqlite3_io_methods::xCheckReservedLock, int, int*>,
    Pass<&sqlite3_io_methods::xFileControl, int, int, void*>,
    Pass<&sqlite3_io_methods::xSectorSize, int>,
    Pass<&sqlite3_io_methods::xDeviceCharacteristics, int>,
    Pass<&sqlite3_io_methods::xShmMap, int, int, int, int, void volatile**>,
    Pass<&sqlite3_io_methods::xShmLock, int, int, int, int>,
    Pass<&sqlite3_io_methods::xShmBarrier, void>,
    Pass<&sqlite3_io_methods::xShmUnmap, int, int>,
    Fetch,
    Unfetch,
};

int Open(sqlite3_vfs*, const char* name, sqlite3_file* file, int flags, int* out_flags) {
  if ((flags & SQLITE_OPEN_MAIN_DB) == 0) {
    return RealVfs()->xOpen(RealVfs(), name, file, flags, out_flags);
  }
  Self(file)->has_checksums = false;
  const int code = RealVfs()->xOpen(RealVfs(), name, Real(file), flags, out_flags);
  file->pMethods = Real(file)->pMethods == nullptr ? nullptr : &kMethods;
  return code;
}

}  // namespace

void AddChecksum(char* page, int bytes, int64_t number) {
  const int rest = bytes - kChecksumBytes;
  const uint64_t sum = Sum(page, rest, number);
  std::memcpy(page + rest, &sum, sizeof(sum));
}

const char* ChecksumVfs() {
  static const bool registered = [] {
    static sqlite3_vfs vfs = *RealVfs();
    vfs.zName = kName;
    vfs.szOsFile += static_cast<int>(sizeof(File));
    vfs.xOpen = Open;
    vfs.pNext = nullptr;
    return sqlite3_vfs_register(&vfs, /*makeDflt=*/0) == SQLITE_OK;
  }();
  return registered ? kName : nullptr;
}

}  // namespace traind::sqlite
