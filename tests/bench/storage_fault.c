// A preloaded library that makes storage full or slow, for tests/bench/promise.py.
// The first byte of the file that STORAGE_FAULT names tells: 'f' - writes to regular
// files fail with ENOSPC; 's' - writes and syncs take ten times as long, and a sync
// 10 ms at least; anything else - nothing. It may change at any time.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

static const volatile char* g_fault;

__attribute__((constructor)) static void Begin(void) {
  const char* path = getenv("STORAGE_FAULT");
  if (path == NULL) return;
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return;
  void* page = mmap(NULL, 1, PROT_READ, MAP_SHARED, fd, 0);
  if (page != MAP_FAILED) g_fault = page;
  close(fd);
}

static char Fault(int fd) {
  const char fault = g_fault != NULL ? *g_fault : 0;
  struct stat info;
  if ((fault != 'f' && fault != 's') || fstat(fd, &info) != 0) return 0;
  return S_ISREG(info.st_mode) ? fault : 0;
}

static long long Now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void Sleep(long long ns) {
  const struct timespec t = {ns / 1000000000LL, ns % 1000000000LL};
  nanosleep(&t, NULL);
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

// Calls the real function; `least` ns are what it takes at least where storage is slow.
#define FAULTY(type, name, least, ...)                        \
  static __typeof__(&name) real;                              \
  if (real == NULL) real = REAL(name);                        \
  const char fault = Fault(fd);                               \
  if (fault == 'f' && (least) == 0) {                         \
    errno = ENOSPC;                                           \
    return -1;                                                \
  }                                                           \
  const long long began = fault == 's' ? Now() : 0;           \
  const type result = real(__VA_ARGS__);                      \
  if (fault == 's') {                                         \
    const int error = errno;                                  \
    const long long more = 9 * (Now() - began);               \
    Sleep(more > (least) ? more : (least));                   \
    errno = error;                                            \
  }                                                           \
  return result

ssize_t write(int fd, const void* data, size_t size) { FAULTY(ssize_t, write, 0, fd, data, size); }
ssize_t pwrite(int fd, const void* data, size_t size, off_t at) {
  FAULTY(ssize_t, pwrite, 0, fd, data, size, at);
}
ssize_t pwrite64(int fd, const void* data, size_t size, off64_t at) {
  FAULTY(ssize_t, pwrite64, 0, fd, data, size, at);
}
ssize_t writev(int fd, const struct iovec* parts, int count) {
  FAULTY(ssize_t, writev, 0, fd, parts, count);
}
int fsync(int fd) { FAULTY(int, fsync, 10000000, fd); }
int fdatasync(int fd) { FAULTY(int, fdatasync, 10000000, fd); }
