#include "common/wire/status_details.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/refused_files.h"
#include "common/wire/error_details.h"

namespace traind {
namespace {

using ::testing::Pair;
using ::testing::UnorderedElementsAre;

absl::Status Refusal() {
  return WithRefusedFiles(
      absl::InvalidArgumentError("data.train: /x lies outside\ndata.test: not there\n"
                                 "model.script.file: no module\ntrain.epochs '0' is too low"),
      {{"data.train", FileProblem::kOutsideRoots},
       {"data.test", FileProblem::kUnreadable},
       {"model.script.file", FileProblem::kUnfit}});
}

TEST(StatusDetailsTest, TheClientLearnsWhichFilesWereRefusedAndWhy) {
  const absl::Status there = FromGrpcWithDetails(ToGrpcWithDetails(Refusal()));
  EXPECT_EQ(there.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(there.message(), Refusal().message());
  EXPECT_THAT(RefusedFilesOf(there),
              UnorderedElementsAre(Pair("data.train", FileProblem::kOutsideRoots),
                                   Pair("data.test", FileProblem::kUnreadable),
                                   Pair("model.script.file", FileProblem::kUnfit)));
}

TEST(StatusDetailsTest, OtherErrorsTellOfNoFiles) {
  EXPECT_TRUE(FromGrpcWithDetails(grpc::Status::OK).ok());
  EXPECT_TRUE(ToGrpcWithDetails(absl::OkStatus()).ok());
  const auto plain = ToGrpcWithDetails(absl::InvalidArgumentError("data.train: cannot read /x"));
  EXPECT_TRUE(RefusedFilesOf(FromGrpcWithDetails(plain)).empty());
  const grpc::Status foreign(grpc::StatusCode::NOT_FOUND, "no job", "\x01 no message");
  EXPECT_EQ(FromGrpcWithDetails(foreign), absl::NotFoundError("no job"));
}

TEST(StatusDetailsTest, ALongErrorKeepsItsTextAndLosesDetails) {
  std::string lines;
  for (int i = 0; i < 200; ++i) lines += "data.train: a mistake of some length\n";
  const grpc::Status status = ToGrpcWithDetails(absl::InvalidArgumentError(lines));
  EXPECT_EQ(status.error_message(), lines);
  EXPECT_LE(status.error_details().size(), size_t{6} << 10);
}

TEST(ErrorDetailsTest, ALineBeginsWithTheFieldThatItIsAbout) {
  EXPECT_EQ(FieldOf("data.train: cannot read /x"), "data.train");
  EXPECT_EQ(FieldOf("data is missing"), "data");
  EXPECT_EQ(FieldOf("train.epochs '0' is below the minimum, 1"), "train.epochs");
  EXPECT_EQ(FieldOf("nobody knows"), "");
}

}  // namespace
}  // namespace traind
