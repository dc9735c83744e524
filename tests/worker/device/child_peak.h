// Measures the memory of a piece of work in a process of its own.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <functional>

#include "worker/device/process_memory.h"

namespace traind {

// Returns by how many bytes `work` raises the peak resident memory of a forked process,
// including pages of mapped files; < 0 if work returned false, or the process died.
inline int64_t PeakOfChild(const std::function<bool()>& work) {
  int ends[2];
  EXPECT_EQ(pipe(ends), 0);
  const pid_t child = fork();
  if (child == 0) {
    ResetPeakResident();
    const int64_t before = PeakResidentBytes();
    const int64_t peak = work() ? PeakResidentBytes() - before : -1;
    _exit(write(ends[1], &peak, sizeof peak) == sizeof peak ? 0 : 1);
  }
  close(ends[1]);
  int64_t peak = -1;
  if (read(ends[0], &peak, sizeof peak) != static_cast<ssize_t>(sizeof peak)) peak = -1;
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  close(ends[0]);
  return peak;
}

}  // namespace traind
