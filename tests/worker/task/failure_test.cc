#include "worker/task/failure.h"

#include <gtest/gtest.h>

namespace traind {
namespace {

TEST(FailureTest, InvalidArgumentIsTheUsersErrorInEveryProgram) {
  EXPECT_EQ(FailureReason(absl::InvalidArgumentError("no such field")),
            AttemptEndReason::kUserError);
  EXPECT_EQ(FailureReason(absl::NotFoundError("our own file")), AttemptEndReason::kInternal);
  EXPECT_EQ(FailureReason(absl::FailedPreconditionError("x")), AttemptEndReason::kInternal);
}

TEST(FailureTest, WhatIsWrongWithAUsersFileIsADataError) {
  for (const auto code : {absl::StatusCode::kInvalidArgument, absl::StatusCode::kNotFound,
                          absl::StatusCode::kPermissionDenied}) {
    EXPECT_EQ(FailureReason(OfUserFiles(absl::Status(code, "x"))), AttemptEndReason::kDataError);
  }
  EXPECT_EQ(FailureReason(OfUserFiles(absl::ResourceExhaustedError("x"))),
            AttemptEndReason::kStorageFull);
  EXPECT_EQ(FailureReason(OfUserFiles(absl::DataLossError("x"))), AttemptEndReason::kInternal);
  EXPECT_TRUE(OfUserFiles(absl::OkStatus()).ok());
}

TEST(FailureTest, AMarkStaysWhateverReadsThePartAround) {
  EXPECT_EQ(FailureReason(OfUserFiles(UserError("the module returns nothing"))),
            AttemptEndReason::kUserError);
  const absl::Status memory = OutOfMemory(absl::ResourceExhaustedError("x"));
  EXPECT_EQ(FailureReason(OfUserFiles(memory)), AttemptEndReason::kOutOfMemory);
  EXPECT_EQ(FailureReason(StorageError(memory)), AttemptEndReason::kOutOfMemory);
  EXPECT_EQ(FailureReason(StorageError(absl::ResourceExhaustedError("x"))),
            AttemptEndReason::kStorageFull);
  EXPECT_EQ(FailureReason(CollectiveTimeout(absl::UnavailableError("x"))),
            AttemptEndReason::kCollectiveTimeout);
  EXPECT_TRUE(OutOfMemory(absl::OkStatus()).ok());
}

}  // namespace
}  // namespace traind
