// A preloaded library between a program and its files, for tests/storage/storage_faults.py. It
// counts the writes, syncs, renames and opens of files below STORAGE_ROOT, over all processes; it
// makes one of them fail, or kills the process there; and it keeps a journal from which a power cut is made: what was not synced
// may be undone.
//
// The file that STORAGE_SHIM names is shared memory, struct Control. STORAGE_JOURNAL names the
// journal; without it there is none.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

enum Kind { kWrite, kSync, kRename, kOpen, kKinds };

struct Control {
  int64_t fail_kind;  // an enum Kind; -1: none
  int64_t fail_at;    // which one fails, from 1
  int64_t fail_more;  // how many after it fail, too
  int64_t error;      // errno; less than 0: the process is killed instead
  int64_t lie;        // 1: syncs answer that they are done, and are not
  int64_t counts[kKinds];
  int64_t failed;  // how many have
  char path[PATH_MAX];  // of the last that has
};

// A line of the journal; `text` bytes, then `before` bytes, then `after` bytes follow.
enum Type { kWritten = 1, kCut = 2, kSynced = 3, kRenamed = 4, kFolderSynced = 5 };
struct Line {
  uint64_t type, inode, offset, size_before, begin, text, before, after;
};

static struct Control* g_control;
static char g_root[PATH_MAX];
static int g_journal = -1;
static char g_kept[PATH_MAX];  // the folder of files that a rename has replaced

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

__attribute__((constructor)) static void Begin(void) {
  const char* control = getenv("STORAGE_SHIM");
  const char* root = getenv("STORAGE_ROOT");
  const char* journal = getenv("STORAGE_JOURNAL");
  if (control == NULL || root == NULL) return;
  snprintf(g_root, sizeof(g_root), "%s/", root);
  const int fd = REAL(open)(control, O_RDWR | O_CLOEXEC);
  if (fd < 0) return;
  void* shared = mmap(NULL, sizeof(struct Control), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  if (journal != NULL) {
    snprintf(g_kept, sizeof(g_kept), "%s.kept", journal);
    g_journal = REAL(open)(journal, O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
  }
  if (shared != MAP_FAILED) g_control = shared;
}

// Whether a file below the root is meant; -shm files are no storage.
static int IsOurs(const char* path) {
  if (g_control == NULL || strncmp(path, g_root, strlen(g_root)) != 0) return 0;
  const size_t length = strlen(path);
  return length < 4 || strcmp(path + length - 4, "-shm") != 0;
}

static int PathOf(int fd, char* path) {
  char link[64];
  snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
  const ssize_t length = readlink(link, path, PATH_MAX - 1);
  path[length > 0 ? length : 0] = 0;
  return length > 0;
}

static int IsOurFile(int fd, char* path, struct stat* info) {
  return g_control != NULL && PathOf(fd, path) && IsOurs(path) && fstat(fd, info) == 0;
}

// Counts an operation; returns whether it must fail, with errno set.
static int Fails(enum Kind kind, const char* path) {
  const int64_t number = __atomic_add_fetch(&g_control->counts[kind], 1, __ATOMIC_SEQ_CST);
  const int64_t at = g_control->fail_at;
  if (g_control->fail_kind != kind || number < at || number > at + g_control->fail_more) return 0;
  __atomic_add_fetch(&g_control->failed, 1, __ATOMIC_SEQ_CST);
  snprintf(g_control->path, sizeof(g_control->path), "%s", path);
  if (g_control->error < 0) kill(getpid(), SIGKILL);
  errno = (int)g_control->error;
  return 1;
}

static void Note(struct Line line, const char* text, const void* before, const void* after) {
  line.text = text == NULL ? 0 : strlen(text);
  const size_t size = sizeof(line) + line.text + line.before + line.after;
  char* bytes = malloc(size);
  if (bytes == NULL) abort();
  memcpy(bytes, &line, sizeof(line));
  if (line.text > 0) memcpy(bytes + sizeof(line), text, line.text);
  if (line.before > 0) memcpy(bytes + sizeof(line) + line.text, before, line.before);
  if (line.after > 0) memcpy(bytes + sizeof(line) + line.text + line.before, after, line.after);
  if (REAL(write)(g_journal, bytes, size) != (ssize_t)size) abort();
  free(bytes);
}

static uint64_t JournalSize(void) {
  struct stat info;
  return g_journal >= 0 && fstat(g_journal, &info) == 0 ? (uint64_t)info.st_size : 0;
}

// Notes that `size` bytes will stand at `offset`, and what stands there now.
static void NoteWrite(const char* path, const struct stat* info, const void* data, size_t size,
                      off_t offset) {
  if (g_journal < 0) return;
  struct Line line = {kWritten, info->st_ino, (uint64_t)offset, (uint64_t)info->st_size, 0, 0, 0, size};
  char* before = malloc(size);
  const int fd = REAL(open)(path, O_RDONLY | O_CLOEXEC);
  if (before != NULL && fd >= 0) {
    const ssize_t got = pread(fd, before, size, offset);
    line.before = got > 0 ? (uint64_t)got : 0;
  }
  if (fd >= 0) close(fd);
  Note(line, NULL, before, data);
  free(before);
}

static off_t Position(int fd, const struct stat* info) {
  const int flags = fcntl(fd, F_GETFL);
  return flags >= 0 && (flags & O_APPEND) != 0 ? info->st_size : lseek(fd, 0, SEEK_CUR);
}

#define WRITE(type, name, data, size, offset, ...)              \
  static __typeof__(&name) real;                                \
  if (real == NULL) real = REAL(name);                          \
  char path[PATH_MAX];                                          \
  struct stat info;                                             \
  if (IsOurFile(fd, path, &info) && S_ISREG(info.st_mode)) {    \
    if (Fails(kWrite, path)) return -1;                         \
    NoteWrite(path, &info, data, size, offset);                 \
  }                                                             \
  return real(__VA_ARGS__)

ssize_t write(int fd, const void* data, size_t size) {
  WRITE(ssize_t, write, data, size, Position(fd, &info), fd, data, size);
}
ssize_t pwrite(int fd, const void* data, size_t size, off_t at) {
  WRITE(ssize_t, pwrite, data, size, at, fd, data, size, at);
}
ssize_t pwrite64(int fd, const void* data, size_t size, off64_t at) {
  WRITE(ssize_t, pwrite64, data, size, at, fd, data, size, at);
}
ssize_t writev(int fd, const struct iovec* parts, int count) {
  char path[PATH_MAX];
  struct stat info;
  if (!IsOurFile(fd, path, &info) || !S_ISREG(info.st_mode)) return REAL(writev)(fd, parts, count);
  // A short write is allowed: the caller writes the rest.
  for (int i = 0; i < count; ++i) {
    if (parts[i].iov_len > 0) return write(fd, parts[i].iov_base, parts[i].iov_len);
  }
  return 0;
}

static void NoteCut(const char* path, const struct stat* info, off_t size) {
  if (g_journal < 0) return;
  struct Line line = {kCut, info->st_ino, (uint64_t)size, (uint64_t)info->st_size, 0, 0, 0, 0};
  char* before = NULL;
  const int fd = REAL(open)(path, O_RDONLY | O_CLOEXEC);
  if (size < info->st_size && fd >= 0) {
    before = malloc((size_t)(info->st_size - size));
    const ssize_t got = before == NULL ? 0 : pread(fd, before, (size_t)(info->st_size - size), size);
    line.before = got > 0 ? (uint64_t)got : 0;
  }
  if (fd >= 0) close(fd);
  Note(line, NULL, before, NULL);
  free(before);
}

#define TRUNCATE(name)                                       \
  static __typeof__(&name) real;                             \
  if (real == NULL) real = REAL(name);                       \
  char path[PATH_MAX];                                       \
  struct stat info;                                          \
  if (IsOurFile(fd, path, &info) && S_ISREG(info.st_mode)) { \
    if (Fails(kWrite, path)) return -1;                      \
    NoteCut(path, &info, size);                              \
  }                                                          \
  return real(fd, size)

int ftruncate(int fd, off_t size) { TRUNCATE(ftruncate); }
int ftruncate64(int fd, off64_t size) { TRUNCATE(ftruncate64); }

#define SYNC(name)                                                               \
  static __typeof__(&name) real;                                                 \
  if (real == NULL) real = REAL(name);                                           \
  char path[PATH_MAX];                                                           \
  struct stat info;                                                              \
  if (!IsOurFile(fd, path, &info)) return real(fd);                              \
  if (Fails(kSync, path)) return -1;                                             \
  if (g_control->lie) return 0;                                                  \
  const uint64_t begin = JournalSize();                                          \
  const int result = real(fd);                                                   \
  if (result == 0 && g_journal >= 0) {                                           \
    const int folder = S_ISDIR(info.st_mode);                                    \
    struct Line line = {folder ? kFolderSynced : kSynced, info.st_ino, 0, 0, begin, 0, 0, 0}; \
    Note(line, path, NULL, NULL);                                                \
  }                                                                              \
  return result

int fsync(int fd) { SYNC(fsync); }
int fdatasync(int fd) { SYNC(fdatasync); }

int rename(const char* from, const char* to) {
  static __typeof__(&rename) real;
  if (real == NULL) real = REAL(rename);
  if (!IsOurs(to)) return real(from, to);
  if (Fails(kRename, to)) return -1;
  if (g_journal < 0) return real(from, to);
  // The file that is replaced stays under another name, so that the rename can be undone.
  static int64_t number;
  char kept[PATH_MAX + 64], text[3 * PATH_MAX];
  snprintf(kept, sizeof(kept), "%s/%d-%lld", g_kept, (int)getpid(),
           (long long)__atomic_add_fetch(&number, 1, __ATOMIC_SEQ_CST));
  if (link(to, kept) != 0) kept[0] = 0;
  const int result = real(from, to);
  if (result == 0) {
    snprintf(text, sizeof(text), "%s\n%s\n%s", from, to, kept);
    Note((struct Line){kRenamed, 0, 0, 0, 0, 0, 0, 0}, text, NULL, NULL);
  }
  return result;
}

#define OPEN(name, first, ...)                                        \
  static __typeof__(&name) real;                                      \
  if (real == NULL) real = REAL(name);                                \
  mode_t mode = 0;                                                    \
  if ((flags & (O_CREAT | O_TMPFILE)) != 0) {                         \
    va_list rest;                                                     \
    va_start(rest, flags);                                            \
    mode = va_arg(rest, mode_t);                                      \
    va_end(rest);                                                     \
  }                                                                   \
  if ((flags & O_ACCMODE) != O_RDONLY && IsOurs(path) && Fails(kOpen, path)) return -1; \
  return real(__VA_ARGS__)

int open(const char* path, int flags, ...) { OPEN(open, path, path, flags, mode); }
int open64(const char* path, int flags, ...) { OPEN(open64, path, path, flags, mode); }
int openat(int folder, const char* path, int flags, ...) {
  OPEN(openat, path, folder, path, flags, mode);
}
int openat64(int folder, const char* path, int flags, ...) {
  OPEN(openat64, path, folder, path, flags, mode);
}
