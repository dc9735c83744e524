#include "worker/device/process_memory.h"

#include <fcntl.h>
#include <malloc.h>
#include <unistd.h>

#include <cstdio>
#include <memory>

namespace traind {

int64_t PeakResidentBytes() {
  const std::unique_ptr<FILE, int (*)(FILE*)> status(std::fopen("/proc/self/status", "re"),
                                                     &std::fclose);
  if (status == nullptr) return 0;
  char line[256];
  long long kib = 0;
  while (std::fgets(line, sizeof line, status.get()) != nullptr) {
    if (std::sscanf(line, "VmHWM: %lld kB", &kib) == 1) return kib * 1024;
  }
  return 0;
}

void ResetPeakResident() {
  const int fd = open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC);
  if (fd < 0) return;  // then the peak counts from the start of the process
  const char kPeak = '5';
  [[maybe_unused]] const ssize_t written = write(fd, &kPeak, 1);
  close(fd);
}

void KeepFreedMemory(bool keep) {
  constexpr int kNone = 1 << 30, kLarge = 1 << 20;
  mallopt(M_MMAP_THRESHOLD, keep ? kNone : kLarge);
  mallopt(M_TRIM_THRESHOLD, keep ? kNone : kLarge);
  if (!keep) malloc_trim(0);
}

}  // namespace traind
