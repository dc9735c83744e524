#include "worker/task/failure.h"

#include <gtest/gtest.h>

namespace traind {
namespace {

TEST(FailureTest, InvalidArgumentIsTheUsersErrorInEveryProgram) {
  EXPECT_EQ(FailureReason(absl::InvalidArgumentError("no such field")), "USER_ERROR");
  EXPECT_EQ(FailureReason(absl::NotFoundError("our own file")), "INTERNAL");
  EXPECT_EQ(FailureReason(absl::FailedPreconditionError("x")), "INTERNAL");
}

TEST(FailureTest, WhatIsWrongWithAUsersFileIsADataError) {
  for (const auto code : {absl::StatusCode::kInvalidArgument, absl::StatusCode::kNotFound,
                          absl::StatusCode::kPermissionDenied}) {
    EXPECT_EQ(FailureReason(OfUserFiles(absl::Status(code, "x"))), "DATA_ERROR");
  }
  EXPECT_EQ(FailureReason(OfUserFiles(absl::ResourceExhaustedError("x"))), "STORAGE_FULL");
  EXPECT_EQ(FailureReason(OfUserFiles(absl::DataLossError("x"))), "INTERNAL");
  EXPECT_TRUE(OfUserFiles(absl::OkStatus()).ok());
}

TEST(FailureTest, AMarkStaysWhateverReadsThePartAround) {
  EXPECT_EQ(FailureReason(OfUserFiles(UserError("the module returns nothing"))), "USER_ERROR");
  const absl::Status memory = OutOfMemory(absl::ResourceExhaustedError("x"));
  EXPECT_EQ(FailureReason(OfUserFiles(memory)), "OUT_OF_MEMORY");
  EXPECT_EQ(FailureReason(StorageError(memory)), "OUT_OF_MEMORY");
  EXPECT_EQ(FailureReason(StorageError(absl::ResourceExhaustedError("x"))), "STORAGE_FULL");
  EXPECT_EQ(FailureReason(CollectiveTimeout(absl::UnavailableError("x"))), "COLLECTIVE_TIMEOUT");
  EXPECT_TRUE(OutOfMemory(absl::OkStatus()).ok());
}

}  // namespace
}  // namespace traind
