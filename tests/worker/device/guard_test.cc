#include "worker/device/guard.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

namespace traind {
namespace {

Fault FaultOfThrown(const std::string& message) {
  return FaultOf(Guarded([&message]() -> absl::Status { throw std::runtime_error(message); }));
}

// The libraries' own words, as torch passes them on.
TEST(GuardTest, LibrariesThatFindNoRoomAreOutOfMemory) {
  for (const char* message :
       {"CUDA out of memory. Tried to allocate 2.00 GiB",
        "[enforce fail at alloc_cpu.cpp:118] DefaultCPUAllocator: can't allocate memory: you tried",
        "CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
        "CUDA error: CUBLAS_STATUS_NOT_INITIALIZED when calling `cublasCreate(handle)`",
        "cuDNN error: CUDNN_STATUS_ALLOC_FAILED",
        "cuDNN error: CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED",
        "Unable to find a valid cuDNN algorithm to run convolution",
        "GET was unable to find an engine to execute this computation"}) {
    EXPECT_EQ(FaultOfThrown(message), Fault::kOutOfMemory) << message;
  }
}

TEST(GuardTest, OtherErrorsAreNot) {
  EXPECT_EQ(FaultOfThrown("CUDA error: CUBLAS_STATUS_EXECUTION_FAILED when calling"),
            Fault::kOther);
  EXPECT_EQ(FaultOfThrown("[../gloo/transport/tcp/pair.cc:598] Connection closed by peer"),
            Fault::kCollective);
}

// A backtrace may name functions that sound like it.
TEST(GuardTest, OnlyTheMessageCounts) {
  EXPECT_EQ(FaultOfThrown("index out of range\nException raised from out of memory handler"),
            Fault::kOther);
}

}  // namespace
}  // namespace traind
